#!/usr/bin/env python3
"""Replays a probe's allocations (check_gpu --trace) through PyTorch's real caching allocator: its peak must be ours."""
import json
import sys

import torch

torch.cuda.init()
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
reserved_before = torch.cuda.memory_reserved()
live, expected = {}, 0
for line in sys.stdin:
    word, *numbers = line.split()
    if word == "a":
        live[numbers[0]] = torch.cuda.caching_allocator_alloc(int(numbers[1]))
    elif word == "f":
        torch.cuda.caching_allocator_delete(live.pop(numbers[0]))
    elif word == "peak":
        expected = int(numbers[0])
reserved = torch.cuda.max_memory_reserved() - reserved_before
print(json.dumps({"torch": torch.__version__, "reserved": reserved, "ours": expected, "equal": reserved == expected}))
sys.exit(reserved != expected)
