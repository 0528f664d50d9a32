// Matrix products of operands with any strides: (batch, m, k) times (batch, k, n).

typedef struct {
    long batch, m, k, n, offset_1, offset_2, batch_1, row_1, column_1, batch_2, row_2, column_2,
        type, target, out_offset;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define TARGET ((int)parameters.target)
#endif

// An item for each element of the result.
#ifdef HAS_multiply_elements
KERNEL(64) void multiply_elements(
    const Parameters parameters, GLOBAL const void* x1, GLOBAL const void* x2, GLOBAL void* out) {
    const long item = ITEM;
    const long column = item % parameters.n, above = item / parameters.n;
    const long row = above % parameters.m, batch = above / parameters.m;
    if (batch >= parameters.batch) return;
    long first = parameters.offset_1 + batch * parameters.batch_1 + row * parameters.row_1;
    long second = parameters.offset_2 + batch * parameters.batch_2 + column * parameters.column_2;
    C sum = (C)0;
    for (long k = 0; k < parameters.k; ++k) {
        sum += READ(x1, first, TYPE) * READ(x2, second, TYPE);
        first += parameters.column_1;
        second += parameters.row_2;
    }
    WRITE(out, parameters.out_offset + item, TARGET, sum);
}
#endif

#if IS_FLOATING

// For a CPU: ROWS vectors of 64 bytes in registers. The second matrix is packed in panels as wide as a
// vector, of which the last one is padded with zeros. The first matrix is packed in panels of ROWS where
// its rows are not contiguous (PACKED_1).

#define ROWS 6
#define ROWS_PER_PACKING_ITEM 64
#define VECTOR CONCAT(C, VECTOR_WIDTH)
#define LOAD_VECTOR CONCAT(vload, VECTOR_WIDTH)
#define STORE_VECTOR CONCAT(vstore, VECTOR_WIDTH)

#ifdef HAS_pack_panels
#ifndef PANEL
#define PANEL VECTOR_WIDTH
#endif
#define ELEMENT(k, j) READ(x2, base + (k) * row_2 + (j) * column_2, TYPE)
// An item packs up to ROWS_PER_PACKING_ITEM rows of a panel, reading them in the order of memory.
KERNEL(1) void pack_panels(
    const Parameters parameters, GLOBAL const void* x2, GLOBAL C* packed) {
    const long panels = (parameters.n + PANEL - 1) / PANEL, inner = parameters.k, item = ITEM;
    const long blocks = (inner + ROWS_PER_PACKING_ITEM - 1) / ROWS_PER_PACKING_ITEM;
    const long first = item % blocks * ROWS_PER_PACKING_ITEM, panel = item / blocks % panels;
    const long batch = item / blocks / panels, column = panel * PANEL;
    const long stop = first + ROWS_PER_PACKING_ITEM < inner ? first + ROWS_PER_PACKING_ITEM : inner;
    const long row_2 = parameters.row_2, column_2 = parameters.column_2;
    const long base = parameters.offset_2 + batch * parameters.batch_2 + column * column_2;
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
    const long panels = (n + VECTOR_WIDTH - 1) / VECTOR_WIDTH, blocks = (m + ROWS - 1) / ROWS;
    const long first_row = item % blocks * ROWS, above = item / blocks;
    const long panel = above % panels, batch = above / panels;
    if (batch >= parameters.batch) return;
    GLOBAL const C* rows[ROWS];
#if PACKED_1
    const long panel_1 = (parameters.batch_1 ? batch : 0) * blocks + item % blocks, column_1 = ROWS;
    for (int r = 0; r < ROWS; ++r) rows[r] = x1 + panel_1 * parameters.k * ROWS + r;
#else
    for (int r = 0; r < ROWS; ++r) {
        const long row = first_row + r < m ? first_row + r : m - 1;
        rows[r] = x1 + parameters.offset_1 + batch * parameters.batch_1 + row * parameters.row_1;
    }
    const long column_1 = parameters.column_1;
#endif
    const long batch_2 = parameters.batch_2 ? batch : 0;
    GLOBAL const C* values = packed + (batch_2 * panels + panel) * parameters.k * VECTOR_WIDTH;
    VECTOR s0 = (C)0, s1 = (C)0, s2 = (C)0, s3 = (C)0, s4 = (C)0, s5 = (C)0;
    for (long k = 0; k < parameters.k; ++k) {
        const VECTOR value = LOAD_VECTOR(k, values);
        const long position = k * column_1;
        s0 = fma((VECTOR)(rows[0][position]), value, s0);
        s1 = fma((VECTOR)(rows[1][position]), value, s1);
        s2 = fma((VECTOR)(rows[2][position]), value, s2);
        s3 = fma((VECTOR)(rows[3][position]), value, s3);
        s4 = fma((VECTOR)(rows[4][position]), value, s4);
        s5 = fma((VECTOR)(rows[5][position]), value, s5);
    }
    C sums[ROWS * VECTOR_WIDTH];
    STORE_VECTOR(s0, 0, sums);
    STORE_VECTOR(s1, 1, sums);
    STORE_VECTOR(s2, 2, sums);
    STORE_VECTOR(s3, 3, sums);
    STORE_VECTOR(s4, 4, sums);
    STORE_VECTOR(s5, 5, sums);
    const int height = m - first_row < ROWS ? (int)(m - first_row) : ROWS;
    const long columns = n - panel * VECTOR_WIDTH;
    const int width = columns < VECTOR_WIDTH ? (int)columns : VECTOR_WIDTH;
    for (int r = 0; r < height; ++r) {
        const long index =
            parameters.out_offset + (batch * m + first_row + r) * n + panel * VECTOR_WIDTH;
        for (int j = 0; j < width; ++j) WRITE(out, index + j, TARGET, sums[r * VECTOR_WIDTH + j]);
    }
}
#endif
#endif
