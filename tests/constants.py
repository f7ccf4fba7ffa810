"""Constants of model texts: those that the nodes speak of, out of a stock of them."""

import re


def spoken_of(nodes: str, *stock: str) -> str:
    """Return `<...>` with the constants that a text of nodes names, "" if there are none.

    Args:
        nodes: the text of the nodes.
        stock: constants as text, `float[2] s = {1,2}`; of one name the last counts.
    """
    by_name = {constant.partition(" = ")[0].split()[-1]: constant for constant in stock}
    words = set(re.findall(r"\w+", nodes))
    given = [constant for name, constant in by_name.items() if name in words]
    return f"<{', '.join(given)}>" if given else ""
