// Matrix products for a GPU: (batch, m, k) times (batch, k, n), operands with any strides. A group
// computes a tile of ROWS by COLUMNS, and each of its 256 items ROWS_PER_ITEM by COLUMNS_PER_ITEM elements
// of it, from tiles of the operands in local memory that are DEPTH deep. While a pair of those is
// multiplied, the next one is loaded. Where there are few tiles, k is split into parts, each of which has
// a result: (batch, parts, m, n).

typedef struct {
    long batch, m, k, n, offset_1, offset_2, batch_1, row_1, column_1, batch_2, row_2, column_2,
        parts, chunk, out_offset;
} Parameters;

#define ROW_VEC4S (ROWS_PER_ITEM / 4)
#define COLUMN_VEC4S (COLUMNS_PER_ITEM / 4)
#define ITEMS_DOWN (ROWS / ROWS_PER_ITEM)
#define ITEMS_ACROSS (COLUMNS / COLUMNS_PER_ITEM)
#define VEC4S_1 (ROWS * DEPTH / 1024)
#define VEC4S_2 (COLUMNS * DEPTH / 1024)
// Avoids bank conflicts between the columns of a tile; with doubles there is no room for it in the 32 KiB
// that every device has.
#define PADDING (sizeof(C) == 8 ? 0 : 4)
// Rows of tiles of which the columns are computed together, so that caches serve what they read.
#define BAND 8

// Up to four elements, of which `count` exist; zeros for the others.
inline VEC4 load_up_to_four(
    GLOBAL const void* x, long index, long stride, long count, int by_vec4) {
    if (by_vec4 && count >= 4) return READ_VEC4(x, index, TYPE);
    VEC4 values = (VEC4)((C)0);
    if (count > 0) values.x = READ(x, index, TYPE);
    if (count > 1) values.y = READ(x, index + stride, TYPE);
    if (count > 2) values.z = READ(x, index + 2 * stride, TYPE);
    if (count > 3) values.w = READ(x, index + 3 * stride, TYPE);
    return values;
}

// An item loads vectors of four elements of a tile along the axis that is contiguous: k if ALONG_INNER.
// `across` and `along` are the indices in the tile of vector number q.
#define ACROSS(q, SIZE, ALONG_INNER) \
    (ALONG_INNER ? ((q) * 256 + lane) / (DEPTH / 4) : ((q) * 256 + lane) % (SIZE / 4) * 4)
#define ALONG(q, SIZE, ALONG_INNER) \
    (ALONG_INNER ? ((q) * 256 + lane) % (DEPTH / 4) * 4 : ((q) * 256 + lane) / (SIZE / 4))

#define FETCH(held, COUNT, x, SIZE, ALONG_INNER, BY_VEC4, origin, edge, stride, stride_k)                  \
    UNROLL for (int q = 0; q < COUNT; ++q) {                                                               \
        const int across = ACROSS(q, SIZE, ALONG_INNER), along = ALONG(q, SIZE, ALONG_INNER);              \
        const long remaining = edge - across, remaining_k = stop - k - along;                              \
        const long count = remaining <= 0 || remaining_k <= 0 ? 0 : ALONG_INNER ? remaining_k : remaining; \
        held[q] = load_up_to_four(x, origin + across * stride + (k + along) * stride_k,                    \
                          ALONG_INNER ? stride_k : stride, count, BY_VEC4);                                \
    }

#define STORE(held, COUNT, tile, SIZE, ALONG_INNER)                                           \
    UNROLL for (int q = 0; q < COUNT; ++q) {                                                  \
        const int across = ACROSS(q, SIZE, ALONG_INNER), along = ALONG(q, SIZE, ALONG_INNER); \
        if (ALONG_INNER) {                                                                    \
            tile[along][across] = held[q].x;                                                  \
            tile[along + 1][across] = held[q].y;                                              \
            tile[along + 2][across] = held[q].z;                                              \
            tile[along + 3][across] = held[q].w;                                              \
        } else {                                                                              \
            *(LOCAL VEC4*)&tile[along][across] = held[q];                                     \
        }                                                                                     \
    }

KERNEL(256) void multiply_tiles(
    const Parameters parameters, GLOBAL const void* restrict x1, GLOBAL const void* restrict x2,
    GLOBAL void* restrict out) {
    LOCAL C first[2][DEPTH][ROWS + PADDING] ALIGNED;
    LOCAL C second[2][DEPTH][COLUMNS + PADDING] ALIGNED;
    const long m = parameters.m, n = parameters.n;
    const long across = (n + COLUMNS - 1) / COLUMNS, down = (m + ROWS - 1) / ROWS;
    const long result = GROUP / (across * down), tile = GROUP % (across * down);
    const long batch = result / parameters.parts;
    const long start = result % parameters.parts * parameters.chunk;
    const long stop = start + parameters.chunk < parameters.k ? start + parameters.chunk : parameters.k;
    const long band = tile / (BAND * across) * BAND, inside = tile % (BAND * across);
    const long height = down - band < BAND ? down - band : BAND;
    const long top = (band + inside % height) * ROWS, left = inside / height * COLUMNS;
    const long row_1 = parameters.row_1, column_1 = parameters.column_1;
    const long row_2 = parameters.row_2, column_2 = parameters.column_2;
    const long origin_1 = parameters.offset_1 + batch * parameters.batch_1 + top * row_1;
    const long origin_2 = parameters.offset_2 + batch * parameters.batch_2 + left * column_2;
    // Each 32 consecutive items form a block of 4 by 8.
    const int lane = LANE;
    const int x = lane % 8 + lane / 32 % (ITEMS_ACROSS / 8) * 8;
    const int y = lane / 8 % 4 + lane / 32 / (ITEMS_ACROSS / 8) * 4;

    VEC4 sums[ROWS_PER_ITEM][COLUMN_VEC4S];
    UNROLL for (int r = 0; r < ROWS_PER_ITEM; ++r)
        UNROLL for (int c = 0; c < COLUMN_VEC4S; ++c) sums[r][c] = (VEC4)((C)0);
    VEC4 held_1[VEC4S_1], held_2[VEC4S_2];
    long k = start;
    FETCH(held_1, VEC4S_1, x1, ROWS, ALONG_INNER_1, BY_VEC4_1, origin_1, m - top, row_1, column_1)
    FETCH(held_2, VEC4S_2, x2, COLUMNS, ALONG_INNER_2, BY_VEC4_2, origin_2, n - left, column_2,
              row_2)
    STORE(held_1, VEC4S_1, first[0], ROWS, ALONG_INNER_1)
    STORE(held_2, VEC4S_2, second[0], COLUMNS, ALONG_INNER_2)
    BARRIER;
    int current = 0;
    for (k += DEPTH; k < stop + DEPTH; k += DEPTH) {
        FETCH(held_1, VEC4S_1, x1, ROWS, ALONG_INNER_1, BY_VEC4_1, origin_1, m - top, row_1, column_1)
        FETCH(held_2, VEC4S_2, x2, COLUMNS, ALONG_INNER_2, BY_VEC4_2, origin_2, n - left, column_2,
              row_2)
        UNROLL for (int d = 0; d < DEPTH; ++d) {
            VEC4 above[ROW_VEC4S], beside[COLUMN_VEC4S];
            UNROLL for (int r = 0; r < ROW_VEC4S; ++r)
                above[r] = *(LOCAL const VEC4*)&first[current][d][(r * ITEMS_DOWN + y) * 4];
            UNROLL for (int c = 0; c < COLUMN_VEC4S; ++c)
                beside[c] = *(LOCAL const VEC4*)&second[current][d][(c * ITEMS_ACROSS + x) * 4];
            UNROLL for (int r = 0; r < ROW_VEC4S; ++r)
                UNROLL for (int c = 0; c < COLUMN_VEC4S; ++c) {
                    sums[4 * r][c] = fma((VEC4)(above[r].x), beside[c], sums[4 * r][c]);
                    sums[4 * r + 1][c] = fma((VEC4)(above[r].y), beside[c], sums[4 * r + 1][c]);
                    sums[4 * r + 2][c] = fma((VEC4)(above[r].z), beside[c], sums[4 * r + 2][c]);
                    sums[4 * r + 3][c] = fma((VEC4)(above[r].w), beside[c], sums[4 * r + 3][c]);
                }
        }
        current = 1 - current;
        STORE(held_1, VEC4S_1, first[current], ROWS, ALONG_INNER_1)
        STORE(held_2, VEC4S_2, second[current], COLUMNS, ALONG_INNER_2)
        BARRIER;
    }
    UNROLL for (int r = 0; r < ROWS_PER_ITEM; ++r) {
        const long row = top + (r / 4 * ITEMS_DOWN + y) * 4 + r % 4;
        UNROLL for (int c = 0; c < COLUMN_VEC4S; ++c) {
            const long column = left + (c * ITEMS_ACROSS + x) * 4;
            const long index = parameters.out_offset + (result * m + row) * n + column;
            if (row >= m) continue;
            if (WRITES_VEC4 && column + 4 <= n) {
                WRITE_VEC4(out, index, TARGET, sums[r][c]);
                continue;
            }
            if (column < n) WRITE(out, index, TARGET, sums[r][c].x);
            if (column + 1 < n) WRITE(out, index + 1, TARGET, sums[r][c].y);
            if (column + 2 < n) WRITE(out, index + 2, TARGET, sums[r][c].z);
            if (column + 3 < n) WRITE(out, index + 3, TARGET, sums[r][c].w);
        }
    }
}
