"""The parts of interpreter.py: the channel, cells and their interrupts, what they print and show, and two engines."""
