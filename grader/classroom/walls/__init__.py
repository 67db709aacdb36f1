"""The walls, and the warm processes behind them."""
