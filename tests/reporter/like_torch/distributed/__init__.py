from torch.distributed.distributed_c10d import all_reduce, init_process_group

__all__ = ["all_reduce", "init_process_group"]
