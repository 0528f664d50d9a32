// Matrix products of operands with any strides: (batch, m, k) times (batch, k, n).

typedef struct {
    long batch, m, k, n, start_1, start_2, batch_1, row_1, column_1, batch_2, row_2, column_2,
        type, target, start_out;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define TARGET ((int)parameters.target)
#endif

// An item for each element of the result.
#ifdef HAS_multiply_each
KERNEL(64) void multiply_each(
    const Parameters parameters, GLOBAL const void* x1, GLOBAL const void* x2, GLOBAL void* out) {
    const long item = ITEM;
    const long column = item % parameters.n, above = item / parameters.n;
    const long row = above % parameters.m, batch = above / parameters.m;
    if (batch >= parameters.batch) return;
    long first = parameters.start_1 + batch * parameters.batch_1 + row * parameters.row_1;
    long second = parameters.start_2 + batch * parameters.batch_2 + column * parameters.column_2;
    C sum = (C)0;
    for (long k = 0; k < parameters.k; ++k) {
        sum += READ(x1, first, TYPE) * READ(x2, second, TYPE);
        first += parameters.column_1;
        second += parameters.row_2;
    }
    WRITE(out, parameters.start_out + item, TARGET, sum);
}
#endif

#if IS_FLOATING

// For a CPU: vectors of 64 bytes, and ROWS of them in registers. The second matrix is packed in
// panels as wide as a vector, of which the last is filled up with zeros. The first is packed too, in
// panels of ROWS, where neighbours in a row are not neighbours in memory (PACKED_1).

#if IS_DOUBLE
#define WIDTH 8
#else
#define WIDTH 16
#endif
#define ROWS 6
#define STEPS 64
#define VECTOR JOIN(C, WIDTH)
#define LOAD_VECTOR JOIN(vload, WIDTH)
#define STORE_VECTOR JOIN(vstore, WIDTH)

#ifdef HAS_pack_panels
#ifndef PANEL
#define PANEL WIDTH
#endif
#define ELEMENT(k, j) READ(x2, base + (k) * row_2 + (j) * column_2, TYPE)
// An item for up to STEPS rows of a panel, which are read in the order in which they lie.
KERNEL(1) void pack_panels(
    const Parameters parameters, GLOBAL const void* x2, GLOBAL C* packed) {
    const long panels = (parameters.n + PANEL - 1) / PANEL, inner = parameters.k, item = ITEM;
    const long blocks = (inner + STEPS - 1) / STEPS;
    const long first = item % blocks * STEPS, panel = item / blocks % panels;
    const long batch = item / blocks / panels, column = panel * PANEL;
    const long stop = first + STEPS < inner ? first + STEPS : inner;
    const long row_2 = parameters.row_2, column_2 = parameters.column_2;
    const long base = parameters.start_2 + batch * parameters.batch_2 + column * column_2;
    GLOBAL C* target = packed + (batch * panels + panel) * inner * PANEL;
    const int width = parameters.n - column < PANEL ? (int)(parameters.n - column) : PANEL;
    if (width == PANEL && column_2 == 1) {
        for (long k = first; k < stop; ++k)
            for (int j = 0; j < PANEL; ++j) target[k * PANEL + j] = ELEMENT(k, j);
        return;
    }
    for (int j = 0; j < PANEL; ++j)
        for (long k = first; k < stop; ++k)
            target[k * PANEL + j] = j < width ? ELEMENT(k, j) : (C)0;
}
#endif

#ifdef HAS_multiply_panels
KERNEL(1) void multiply_panels(
    const Parameters parameters, GLOBAL const C* x1, GLOBAL const C* packed, GLOBAL void* out) {
    const long m = parameters.m, n = parameters.n, item = ITEM;
    const long panels = (n + WIDTH - 1) / WIDTH, blocks = (m + ROWS - 1) / ROWS;
    const long first_row = item % blocks * ROWS, above = item / blocks;
    const long panel = above % panels, batch = above / panels;
    if (batch >= parameters.batch) return;
    GLOBAL const C* rows[ROWS];
#if PACKED_1
    const long which = (parameters.batch_1 ? batch : 0) * blocks + item % blocks, column_1 = ROWS;
    for (int r = 0; r < ROWS; ++r) rows[r] = x1 + which * parameters.k * ROWS + r;
#else
    for (int r = 0; r < ROWS; ++r) {
        const long row = first_row + r < m ? first_row + r : m - 1;
        rows[r] = x1 + parameters.start_1 + batch * parameters.batch_1 + row * parameters.row_1;
    }
    const long column_1 = parameters.column_1;
#endif
    const long before = parameters.batch_2 ? batch : 0;
    GLOBAL const C* values = packed + (before * panels + panel) * parameters.k * WIDTH;
    VECTOR s0 = (C)0, s1 = (C)0, s2 = (C)0, s3 = (C)0, s4 = (C)0, s5 = (C)0;
    for (long k = 0; k < parameters.k; ++k) {
        const VECTOR value = LOAD_VECTOR(k, values);
        const long at = k * column_1;
        s0 = fma((VECTOR)(rows[0][at]), value, s0);
        s1 = fma((VECTOR)(rows[1][at]), value, s1);
        s2 = fma((VECTOR)(rows[2][at]), value, s2);
        s3 = fma((VECTOR)(rows[3][at]), value, s3);
        s4 = fma((VECTOR)(rows[4][at]), value, s4);
        s5 = fma((VECTOR)(rows[5][at]), value, s5);
    }
    C sums[ROWS * WIDTH];
    STORE_VECTOR(s0, 0, sums);
    STORE_VECTOR(s1, 1, sums);
    STORE_VECTOR(s2, 2, sums);
    STORE_VECTOR(s3, 3, sums);
    STORE_VECTOR(s4, 4, sums);
    STORE_VECTOR(s5, 5, sums);
    const int height = m - first_row < ROWS ? (int)(m - first_row) : ROWS;
    const int width = n - panel * WIDTH < WIDTH ? (int)(n - panel * WIDTH) : WIDTH;
    for (int r = 0; r < height; ++r) {
        const long place =
            parameters.start_out + (batch * m + first_row + r) * n + panel * WIDTH;
        for (int j = 0; j < width; ++j) WRITE(out, place + j, TARGET, sums[r * WIDTH + j]);
    }
}
#endif
#endif
