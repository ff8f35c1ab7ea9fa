"""The connections of the server: what they may cost, and which process answers them."""
