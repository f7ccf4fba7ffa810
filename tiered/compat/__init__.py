"""The names of other systems for the API of tiered; nothing in tiered imports them."""
