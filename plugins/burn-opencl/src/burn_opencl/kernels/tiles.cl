// Matrix products for a GPU: (batch, m, k) times (batch, k, n), operands with any strides. A group
// makes a tile of ROWS by COLUMNS, and each of its 256 items PER_ROWS by PER_COLUMNS elements of
// that, from tiles in local memory that are DEPTH deep. While one pair of those is multiplied, the
// next is on its way. Where there are few tiles, k goes in parts, each of which has a result:
// (batch, parts, m, n).

typedef struct {
    long batch, m, k, n, start_1, start_2, batch_1, row_1, column_1, batch_2, row_2, column_2,
        parts, chunk, start_out;
} Parameters;

#define ROW_QUADS (PER_ROWS / 4)
#define COLUMN_QUADS (PER_COLUMNS / 4)
#define ITEMS_DOWN (ROWS / PER_ROWS)
#define ITEMS_ACROSS (COLUMNS / PER_COLUMNS)
#define BROUGHT_1 (ROWS * DEPTH / 1024)
#define BROUGHT_2 (COLUMNS * DEPTH / 1024)
// Keeps columns of a tile apart in memory; with doubles there is no room for it in the 32 KiB that
// every device has.
#define PADDING (sizeof(C) == 8 ? 0 : 4)
// Rows of tiles whose columns are gone through together, so that what they read is near.
#define BAND 8

// Up to four elements, of which `count` are there.
inline QUAD fetched(GLOBAL const void* x, long place, long step, long count, int is_quad) {
    if (is_quad && count >= 4) return READ_QUAD(x, place, TYPE);
    QUAD values = (QUAD)((C)0);
    if (count > 0) values.x = READ(x, place, TYPE);
    if (count > 1) values.y = READ(x, place + step, TYPE);
    if (count > 2) values.z = READ(x, place + 2 * step, TYPE);
    if (count > 3) values.w = READ(x, place + 3 * step, TYPE);
    return values;
}

// What an item brings of a tile is quads along that axis whose elements are neighbours: DEEP says
// that it is k. `across` and `along` are the places in the tile of quad number q.
#define ACROSS(q, SIZE, DEEP) \
    (DEEP ? ((q) * 256 + lane) / (DEPTH / 4) : ((q) * 256 + lane) % (SIZE / 4) * 4)
#define ALONG(q, SIZE, DEEP) \
    (DEEP ? ((q) * 256 + lane) % (DEPTH / 4) * 4 : ((q) * 256 + lane) / (SIZE / 4))

#define FETCH(held, BROUGHT, x, SIZE, DEEP, QUADS, origin, edge, step, step_k)                \
    UNROLL for (int q = 0; q < BROUGHT; ++q) {                                                \
        const int across = ACROSS(q, SIZE, DEEP), along = ALONG(q, SIZE, DEEP);               \
        const long rest = edge - across, deep = stop - k - along;                             \
        const long count = rest <= 0 || deep <= 0 ? 0 : DEEP ? deep : rest;                   \
        held[q] = fetched(x, origin + across * step + (k + along) * step_k,                   \
                          DEEP ? step_k : step, count, QUADS);                                \
    }

#define STORE(held, BROUGHT, tile, SIZE, DEEP)                                                \
    UNROLL for (int q = 0; q < BROUGHT; ++q) {                                                \
        const int across = ACROSS(q, SIZE, DEEP), along = ALONG(q, SIZE, DEEP);               \
        if (DEEP) {                                                                           \
            tile[along][across] = held[q].x;                                                  \
            tile[along + 1][across] = held[q].y;                                              \
            tile[along + 2][across] = held[q].z;                                              \
            tile[along + 3][across] = held[q].w;                                              \
        } else {                                                                              \
            *(LOCAL QUAD*)&tile[along][across] = held[q];                                     \
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
    const long origin_1 = parameters.start_1 + batch * parameters.batch_1 + top * row_1;
    const long origin_2 = parameters.start_2 + batch * parameters.batch_2 + left * column_2;
    // Items of 32 in a row lie as 4 by 8.
    const int lane = LANE;
    const int x = lane % 8 + lane / 32 % (ITEMS_ACROSS / 8) * 8;
    const int y = lane / 8 % 4 + lane / 32 / (ITEMS_ACROSS / 8) * 4;

    QUAD sums[PER_ROWS][COLUMN_QUADS];
    UNROLL for (int r = 0; r < PER_ROWS; ++r)
        UNROLL for (int c = 0; c < COLUMN_QUADS; ++c) sums[r][c] = (QUAD)((C)0);
    QUAD held_1[BROUGHT_1], held_2[BROUGHT_2];
    long k = start;
    FETCH(held_1, BROUGHT_1, x1, ROWS, DEEP_1, QUADS_1, origin_1, m - top, row_1, column_1)
    FETCH(held_2, BROUGHT_2, x2, COLUMNS, DEEP_2, QUADS_2, origin_2, n - left, column_2, row_2)
    STORE(held_1, BROUGHT_1, first[0], ROWS, DEEP_1)
    STORE(held_2, BROUGHT_2, second[0], COLUMNS, DEEP_2)
    BARRIER;
    int now = 0;
    for (k += DEPTH; k < stop + DEPTH; k += DEPTH) {
        FETCH(held_1, BROUGHT_1, x1, ROWS, DEEP_1, QUADS_1, origin_1, m - top, row_1, column_1)
        FETCH(held_2, BROUGHT_2, x2, COLUMNS, DEEP_2, QUADS_2, origin_2, n - left, column_2, row_2)
        UNROLL for (int d = 0; d < DEPTH; ++d) {
            QUAD above[ROW_QUADS], beside[COLUMN_QUADS];
            UNROLL for (int r = 0; r < ROW_QUADS; ++r)
                above[r] = *(LOCAL const QUAD*)&first[now][d][(r * ITEMS_DOWN + y) * 4];
            UNROLL for (int c = 0; c < COLUMN_QUADS; ++c)
                beside[c] = *(LOCAL const QUAD*)&second[now][d][(c * ITEMS_ACROSS + x) * 4];
            UNROLL for (int r = 0; r < ROW_QUADS; ++r)
                UNROLL for (int c = 0; c < COLUMN_QUADS; ++c) {
                    sums[4 * r][c] = fma((QUAD)(above[r].x), beside[c], sums[4 * r][c]);
                    sums[4 * r + 1][c] = fma((QUAD)(above[r].y), beside[c], sums[4 * r + 1][c]);
                    sums[4 * r + 2][c] = fma((QUAD)(above[r].z), beside[c], sums[4 * r + 2][c]);
                    sums[4 * r + 3][c] = fma((QUAD)(above[r].w), beside[c], sums[4 * r + 3][c]);
                }
        }
        now = 1 - now;
        STORE(held_1, BROUGHT_1, first[now], ROWS, DEEP_1)
        STORE(held_2, BROUGHT_2, second[now], COLUMNS, DEEP_2)
        BARRIER;
    }
    UNROLL for (int r = 0; r < PER_ROWS; ++r) {
        const long row = top + (r / 4 * ITEMS_DOWN + y) * 4 + r % 4;
        UNROLL for (int c = 0; c < COLUMN_QUADS; ++c) {
            const long column = left + (c * ITEMS_ACROSS + x) * 4;
            const long place = parameters.start_out + (result * m + row) * n + column;
            if (row >= m) continue;
            if (QUADS_OUT && column + 4 <= n) {
                WRITE_QUAD(out, place, TARGET, sums[r][c]);
                continue;
            }
            if (column < n) WRITE(out, place, TARGET, sums[r][c].x);
            if (column + 1 < n) WRITE(out, place + 1, TARGET, sums[r][c].y);
            if (column + 2 < n) WRITE(out, place + 2, TARGET, sums[r][c].z);
            if (column + 3 < n) WRITE(out, place + 3, TARGET, sums[r][c].w);
        }
    }
}
