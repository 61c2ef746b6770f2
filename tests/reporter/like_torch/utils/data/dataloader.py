class _BaseDataLoaderIter:
    def __init__(self, loader):
        self._items, self._num_yielded = iter(loader.items), 0

    def __iter__(self):
        return self

    def __next__(self):
        item = next(self._items)
        self._num_yielded += 1
        return item


class DataLoader:
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return _BaseDataLoaderIter(self)
