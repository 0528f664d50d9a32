"""Linear algebra: products, norms, equations, decompositions."""
