# slow: pairs of rows go through the pipeline, one pair after the other
# cause: many launches
import torch


class Pipeline:
    def __init__(self, limit=3.0, full_scale=100.0):
        self.limit = limit
        self.full_scale = full_scale

    def __call__(self, rows, gain):
        low, high = torch.aminmax(rows, dim=1, keepdim=True)
        std, mean = torch.std_mean(rows, dim=1, keepdim=True)
        loud = torch.maximum(low.abs(), high.abs()) > self.full_scale
        z = ((rows - mean) / std).clamp(-self.limit, self.limit)
        z = torch.where(loud, z / 2, z) * gain
        return torch.where(low == high, 0.0, z)


def unblock(x, gain):
    step = Pipeline()
    pairs = zip(x.split(2), gain[:, None].split(2), strict=True)
    return torch.cat([step(rows, own) for rows, own in pairs])
