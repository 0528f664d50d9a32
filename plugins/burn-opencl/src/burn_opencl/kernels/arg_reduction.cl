// Index of the largest or smallest element along the middle axis of (outer, n, inner).

typedef struct {
    long outer, n, inner, offset, parts, chunk, smallest, source, target;
} Parameters;
#ifndef SOURCE
#define SOURCE ((int)parameters.source)
#endif

// NaN is better than all numbers; of equal elements the first one stays.
inline int is_better(C x, C best, int smallest) {
    if (x != x) return best == best;
    return smallest ? x < best : x > best;
}

#define VALUE(index) READ(x, index, SOURCE)
// The result of a part: of the row, where that has one part.
#define WRITE_INDEX(position, index) write_long(indices, position, (int)parameters.target, index)
#ifdef HAS_arg_reduce
// An item for each result and part.
KERNEL(64)
void arg_reduce(const Parameters parameters, GLOBAL const void* x, GLOBAL void* indices) {
    const long item = ITEM, column = item % parameters.inner, above = item / parameters.inner;
    PART_OF_ROW(above)
    const long inner = parameters.inner;
    const int smallest = (int)parameters.smallest;
    if (row >= parameters.outer) return;
    const long base = parameters.offset + row * n * inner + column;
    long found = first;
    C best = VALUE(base + first * inner);
    for (long k = first + 1; k < stop; ++k) {
        const C value = VALUE(base + k * inner);
        if (is_better(value, best, smallest)) {
            best = value;
            found = k;
        }
    }
    WRITE_INDEX(item, found);
}
#endif

#ifdef HAS_arg_reduce_contiguous
// For a CPU, of contiguous rows: the extremum of blocks, in several lanes in parallel, and then its index
// in the first block that contains it.
#define CPU_LANES 32
#define BLOCK 256
KERNEL(1)
void arg_reduce_contiguous(const Parameters parameters, GLOBAL const void* x, GLOBAL void* indices) {
    const long above = ITEM;
    PART_OF_ROW(above)
    const long inner = parameters.inner;
    const int smallest = (int)parameters.smallest;
    const long base = parameters.offset + row * n * inner;
    long found = first;
    C best = VALUE(base + first);
    for (long block = first; block < stop; block += BLOCK) {
        const long end = block + BLOCK < stop ? block + BLOCK : stop;
        C own = VALUE(base + block);
        long k = block;
        if (end - block >= CPU_LANES) {
            C lanes[CPU_LANES];
            for (int j = 0; j < CPU_LANES; ++j) lanes[j] = VALUE(base + k + j);
            for (k += CPU_LANES; k + CPU_LANES <= end; k += CPU_LANES)
                for (int j = 0; j < CPU_LANES; ++j) {
                    const C value = VALUE(base + k + j);
                    lanes[j] = smallest ? minimum(lanes[j], value) : maximum(lanes[j], value);
                }
            UNROLL for (int width = CPU_LANES / 2; width > 0; width /= 2)
                for (int j = 0; j < width; ++j)
                    lanes[j] = smallest ? minimum(lanes[j], lanes[j + width])
                                        : maximum(lanes[j], lanes[j + width]);
            own = lanes[0];
        }
        for (; k < end; ++k) {
            const C value = VALUE(base + k);
            own = smallest ? minimum(own, value) : maximum(own, value);
        }
        if (is_better(own, best, smallest)) {
            best = own;
            found = block;
        }
    }
#define IS_BEST(k) \
    (VALUE(base + (k)) == best || (best != best && VALUE(base + (k)) != VALUE(base + (k))))
    for (; found + CPU_LANES <= stop; found += CPU_LANES) {
        int is_here = 0;
        for (int j = 0; j < CPU_LANES; ++j) is_here |= IS_BEST(found + j);
        if (is_here) break;
    }
    while (!IS_BEST(found)) ++found;
    WRITE_INDEX(above, found);
}
#endif

#ifdef HAS_arg_reduce_columns
// For a CPU, of columns: an item reads the rows of a part, COLUMNS columns at a time.
#define COLUMNS 64
KERNEL(1)
void arg_reduce_columns(const Parameters parameters, GLOBAL const void* x, GLOBAL void* indices) {
    const long blocks = (parameters.inner + COLUMNS - 1) / COLUMNS;
    const long column = ITEM % blocks * COLUMNS, above = ITEM / blocks;
    PART_OF_ROW(above)
    const long inner = parameters.inner;
    const int smallest = (int)parameters.smallest;
    const long base = parameters.offset + row * n * inner + column;
    const int columns = inner - column < COLUMNS ? (int)(inner - column) : COLUMNS;
    C best[COLUMNS];
    int found[COLUMNS];
    for (int j = 0; j < columns; ++j) {
        best[j] = VALUE(base + first * inner + j);
        found[j] = 0;
    }
    for (long k = first + 1; k < stop; ++k)
        for (int j = 0; j < columns; ++j) {
            const C value = VALUE(base + k * inner + j);
            const int better = is_better(value, best[j], smallest);
            best[j] = better ? value : best[j];
            found[j] = better ? (int)(k - first) : found[j];
        }
    for (int j = 0; j < columns; ++j) WRITE_INDEX(above * inner + column + j, first + found[j]);
}
#endif

#if defined(HAS_arg_reduce_rows) || defined(HAS_combine_row_parts)
// Combines the results of the lanes, of equal elements the first, in lane 0.
inline void combine_lanes(LOCAL C* values, LOCAL long* found, int lane, int lanes, int smallest) {
    UNROLL for (int step = lanes / 2; step > 0; step /= 2) {
        BARRIER;
        if (lane < step) {
            const C value = values[lane + step];
            const int better = is_better(value, values[lane], smallest);
            const int worse = is_better(values[lane], value, smallest);
            if (better || (!worse && found[lane + step] < found[lane])) {
                values[lane] = value;
                found[lane] = found[lane + step];
            }
        }
    }
}
#endif

#ifdef HAS_arg_reduce_rows
// For a GPU, of contiguous rows: LANES items of a group for each row and part; neighbouring lanes read
// neighbouring elements.
KERNEL(256)
void arg_reduce_rows(const Parameters parameters, GLOBAL const void* x, GLOBAL void* indices) {
    LOCAL C values[256];
    LOCAL long found[256];
    const int lane = LANE % LANES;
    const long result = GROUP * (256 / LANES) + LANE / LANES;
    const int has_row = result < parameters.outer * parameters.parts;
    const long above = has_row ? result : 0;
    PART_OF_ROW(above)
    const long inner = parameters.inner;
    const int smallest = (int)parameters.smallest;
    const long base = parameters.offset + row * n * inner;
    long own = first + lane < stop ? first + lane : first;
    C best = VALUE(base + own);
    UNROLLED(8) for (long k = own + LANES; k < stop; k += LANES) {
        const C value = VALUE(base + k);
        const int better = is_better(value, best, smallest);
        best = better ? value : best;
        own = better ? k : own;
    }
    values[LANE] = best;
    found[LANE] = own;
    combine_lanes(values + (LANE - lane), found + (LANE - lane), lane, LANES, smallest);
    if (lane == 0 && has_row) WRITE_INDEX(result, found[LANE]);
}
#endif

#ifdef HAS_combine_row_parts
// Combines the parts of each row, by a group of a GPU for each row.
KERNEL(256) void combine_row_parts(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const long* part_indices,
    GLOBAL void* out) {
    LOCAL C values[256];
    LOCAL long found[256];
    const int smallest = (int)parameters.smallest;
    const long row = GROUP, parts = parameters.parts;
    const long base = parameters.offset + row * parameters.n;
    long own = part_indices[row * parts + (LANE < parts ? LANE : 0)];
    C best = VALUE(base + own);
    for (long part = LANE + 256; part < parts; part += 256) {
        const long index = part_indices[row * parts + part];
        const C value = VALUE(base + index);
        const int better = is_better(value, best, smallest);
        best = better ? value : best;
        own = better ? index : own;
    }
    values[LANE] = best;
    found[LANE] = own;
    combine_lanes(values, found, LANE, 256, smallest);
    if (LANE == 0) write_long(out, row, (int)parameters.target, found[0]);
}
#endif

#ifdef HAS_combine_parts
// Combines the parts of each row, by an item for each row.
KERNEL(64) void combine_parts(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const long* part_indices,
    GLOBAL void* out) {
    const long inner = parameters.inner, item = ITEM;
    const long column = item % inner, row = item / inner;
    if (row >= parameters.outer) return;
    const long base = parameters.offset + row * parameters.n * inner + column;
    const long parts = parameters.parts;
    const int smallest = (int)parameters.smallest;
    long found = part_indices[row * parts * inner + column];
    C best = READ(x, base + found * inner, SOURCE);
    for (long part = 1; part < parts; ++part) {
        const long k = part_indices[(row * parts + part) * inner + column];
        const C value = READ(x, base + k * inner, SOURCE);
        if (is_better(value, best, smallest)) {
            best = value;
            found = k;
        }
    }
    write_long(out, item, (int)parameters.target, found);
}
#endif
