"""What a run will cost, told before it starts: requests, tokens, operations, hours, money, disk."""
