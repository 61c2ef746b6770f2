from torch.utils.data.dataloader import DataLoader

__all__ = ["DataLoader"]
