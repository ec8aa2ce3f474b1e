"""What L3 needs from the host: the core's ReAct loop, apscheduler, the connected bots, the state table, the usage."""
