// The place of the largest or smallest element of the middle axis of (outer, n, inner).

typedef struct {
    long outer, n, inner, start, parts, chunk, smallest, source, target;
} Parameters;
#ifndef SOURCE
#define SOURCE ((int)parameters.source)
#endif

// NaN is best of all; of equals the first stays.
inline int is_better(C x, C best, int smallest) {
    if (x != x) return best == best;
    return smallest ? x < best : x > best;
}

#define VALUE(place) READ(x, place, SOURCE)
// What a part found: where there is one only, that is the result.
#define FOUND(at, place) write_long(places, at, (int)parameters.target, place)
#define PART                                                                         \
    const long n = parameters.n, inner = parameters.inner;                           \
    const int smallest = (int)parameters.smallest;                                   \
    const long part = above % parameters.parts, row = above / parameters.parts;      \
    const long first = part * parameters.chunk;                                      \
    const long stop = first + parameters.chunk < n ? first + parameters.chunk : n;

#ifdef HAS_find_extremum
// An item for each result and part.
KERNEL(64)
void find_extremum(const Parameters parameters, GLOBAL const void* x, GLOBAL void* places) {
    const long item = ITEM, column = item % parameters.inner, above = item / parameters.inner;
    PART
    if (row >= parameters.outer) return;
    const long base = parameters.start + row * n * inner + column;
    long found = first;
    C best = VALUE(base + first * inner);
    for (long k = first + 1; k < stop; ++k) {
        const C value = VALUE(base + k * inner);
        if (is_better(value, best, smallest)) {
            best = value;
            found = k;
        }
    }
    FOUND(item, found);
}
#endif

#ifdef HAS_find_along
// For a CPU, along rows: the extremum of blocks, of which several elements go side by side, and then
// its place in the first block that has it.
#define LANES 32
#define BLOCK 256
KERNEL(1) void find_along(const Parameters parameters, GLOBAL const void* x, GLOBAL void* places) {
    const long above = ITEM;
    PART
    const long base = parameters.start + row * n * inner;
    long found = first;
    C best = VALUE(base + first);
    for (long block = first; block < stop; block += BLOCK) {
        const long end = block + BLOCK < stop ? block + BLOCK : stop;
        C own = VALUE(base + block);
        long k = block;
        if (end - block >= LANES) {
            C lanes[LANES];
            for (int j = 0; j < LANES; ++j) lanes[j] = VALUE(base + k + j);
            for (k += LANES; k + LANES <= end; k += LANES)
                for (int j = 0; j < LANES; ++j) {
                    const C value = VALUE(base + k + j);
                    lanes[j] = smallest ? smaller(lanes[j], value) : larger(lanes[j], value);
                }
            UNROLL for (int width = LANES / 2; width > 0; width /= 2)
                for (int j = 0; j < width; ++j)
                    lanes[j] = smallest ? smaller(lanes[j], lanes[j + width])
                                        : larger(lanes[j], lanes[j + width]);
            own = lanes[0];
        }
        for (; k < end; ++k) {
            const C value = VALUE(base + k);
            own = smallest ? smaller(own, value) : larger(own, value);
        }
        if (is_better(own, best, smallest)) {
            best = own;
            found = block;
        }
    }
#define IS_BEST(k) \
    (VALUE(base + (k)) == best || (best != best && VALUE(base + (k)) != VALUE(base + (k))))
    for (; found + LANES <= stop; found += LANES) {
        int here = 0;
        for (int j = 0; j < LANES; ++j) here |= IS_BEST(found + j);
        if (here) break;
    }
    while (!IS_BEST(found)) ++found;
    FOUND(above, found);
}
#endif

#ifdef HAS_find_columns
// For a CPU, across rows: an item goes over the rows of a part, COLUMNS at a time.
#define COLUMNS 64
KERNEL(1)
void find_columns(const Parameters parameters, GLOBAL const void* x, GLOBAL void* places) {
    const long blocks = (parameters.inner + COLUMNS - 1) / COLUMNS;
    const long column = ITEM % blocks * COLUMNS, above = ITEM / blocks;
    PART
    const long base = parameters.start + row * n * inner + column;
    const int wide = inner - column < COLUMNS ? (int)(inner - column) : COLUMNS;
    C best[COLUMNS];
    int found[COLUMNS];
    for (int j = 0; j < wide; ++j) {
        best[j] = VALUE(base + first * inner + j);
        found[j] = 0;
    }
    for (long k = first + 1; k < stop; ++k)
        for (int j = 0; j < wide; ++j) {
            const C value = VALUE(base + k * inner + j);
            const int better = is_better(value, best[j], smallest);
            best[j] = better ? value : best[j];
            found[j] = better ? (int)(k - first) : found[j];
        }
    for (int j = 0; j < wide; ++j) FOUND(above * inner + column + j, first + found[j]);
}
#endif

#if defined(HAS_find_by_group) || defined(HAS_join_by_group)
// The best of what so many items found, of equals the first: it is the first item's then.
inline void join_found(LOCAL C* values, LOCAL long* found, int lane, int lanes, int smallest) {
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

#ifdef HAS_find_by_group
// For a GPU, along rows: ROW_LANES items of a group for each row and part; neighbours read neighbours.
KERNEL(256)
void find_by_group(const Parameters parameters, GLOBAL const void* x, GLOBAL void* places) {
    LOCAL C values[256];
    LOCAL long found[256];
    const int lane = LANE % ROW_LANES;
    const long result = GROUP * (256 / ROW_LANES) + LANE / ROW_LANES;
    const int is_there = result < parameters.outer * parameters.parts;
    const long above = is_there ? result : 0;
    PART
    const long base = parameters.start + row * n * inner;
    long own = first + lane < stop ? first + lane : first;
    C best = VALUE(base + own);
    UNROLLED(8) for (long k = own + ROW_LANES; k < stop; k += ROW_LANES) {
        const C value = VALUE(base + k);
        const int better = is_better(value, best, smallest);
        best = better ? value : best;
        own = better ? k : own;
    }
    values[LANE] = best;
    found[LANE] = own;
    join_found(values + (LANE - lane), found + (LANE - lane), lane, ROW_LANES, smallest);
    if (lane == 0 && is_there) FOUND(result, found[LANE]);
}
#endif

#ifdef HAS_join_by_group
// The best among those that the parts of a row found, by a group for each row.
KERNEL(256) void join_by_group(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const long* places,
    GLOBAL void* out) {
    LOCAL C values[256];
    LOCAL long found[256];
    const int smallest = (int)parameters.smallest;
    const long row = GROUP, parts = parameters.parts;
    const long base = parameters.start + row * parameters.n;
    long own = places[row * parts + (LANE < parts ? LANE : 0)];
    C best = VALUE(base + own);
    for (long part = LANE + 256; part < parts; part += 256) {
        const long place = places[row * parts + part];
        const C value = VALUE(base + place);
        const int better = is_better(value, best, smallest);
        best = better ? value : best;
        own = better ? place : own;
    }
    values[LANE] = best;
    found[LANE] = own;
    join_found(values, found, LANE, 256, smallest);
    if (LANE == 0) write_long(out, row, (int)parameters.target, found[0]);
}
#endif

#ifdef HAS_join_extrema
// The best among those that the parts found.
KERNEL(64) void join_extrema(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const long* places,
    GLOBAL void* out) {
    const long inner = parameters.inner, item = ITEM;
    const long column = item % inner, row = item / inner;
    if (row >= parameters.outer) return;
    const long base = parameters.start + row * parameters.n * inner + column;
    const long parts = parameters.parts;
    const int smallest = (int)parameters.smallest;
    long found = places[row * parts * inner + column];
    C best = READ(x, base + found * inner, SOURCE);
    for (long part = 1; part < parts; ++part) {
        const long k = places[(row * parts + part) * inner + column];
        const C value = READ(x, base + k * inner, SOURCE);
        if (is_better(value, best, smallest)) {
            best = value;
            found = k;
        }
    }
    write_long(out, item, (int)parameters.target, found);
}
#endif
