"""The trusted side: it draws the inputs, keeps the oracle and the clock, and gives the verdict."""
