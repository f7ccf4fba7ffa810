"""Other people's names for what is here: names only, and nothing inside imports them."""
