"""Sources of the kernels: `dialect.cl` says what is OpenCL, the others say what is computed."""
