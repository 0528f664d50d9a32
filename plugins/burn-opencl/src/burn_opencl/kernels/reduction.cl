// Reductions of the middle axis of (outer, n, inner), in parts where it is long.

typedef struct {
    long outer, n, inner, offset, parts, chunk, op, source, target;
} Parameters;
#ifndef OP
#define OP ((int)parameters.op)
#define SOURCE ((int)parameters.source)
#define TARGET ((int)parameters.target)
#endif
#define LANES_PER_CPU_ITEM 32
#define COLUMNS_PER_CPU_ITEM 2048

// `any` and `all` compare elements with 0 as they read them.
inline C as_operand(int op, C x) { return op == ANY || op == ALL ? (C)(x != (C)0) : x; }
#define OPERAND(v) as_operand(OP, v)
#define VALUE(index) OPERAND(READ(x, index, SOURCE))

#ifdef HAS_reduce
// An item for each result and part; of contiguous rows on a CPU it combines several lanes in parallel.
KERNEL(GROUP_SIZE) void reduce(const Parameters parameters, GLOBAL const void* x, GLOBAL void* out) {
    const long inner = parameters.inner, item = ITEM, column = item % inner;
    PART_OF_ROW(item / inner)
    if (row >= parameters.outer) return;
    const long base = parameters.offset + row * n * inner + column;
    C own;
    long k = first;
#if IS_CONTIGUOUS
    if (stop - first >= 2 * LANES_PER_CPU_ITEM) {
        C lanes[LANES_PER_CPU_ITEM];
        for (int j = 0; j < LANES_PER_CPU_ITEM; ++j) lanes[j] = VALUE(base + first + j);
        for (k = first + LANES_PER_CPU_ITEM; k + LANES_PER_CPU_ITEM <= stop; k += LANES_PER_CPU_ITEM)
            for (int j = 0; j < LANES_PER_CPU_ITEM; ++j)
                lanes[j] = combined(OP, lanes[j], VALUE(base + k + j));
        own = lanes[0];
        for (int j = 1; j < LANES_PER_CPU_ITEM; ++j) own = combined(OP, own, lanes[j]);
    } else
#endif
    {
        own = VALUE(base + k * inner);
        ++k;
    }
    UNROLLED(8) for (; k < stop; ++k) own = combined(OP, own, VALUE(base + k * inner));
    WRITE(out, item, TARGET, own);
}
#endif

#ifdef HAS_reduce_columns
// For a CPU: an item reads the rows of a part in the order of memory, a block of columns at a time.
KERNEL(1) void reduce_columns(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL C* restrict out) {
    const long inner = parameters.inner, item = ITEM;
    const long blocks = (inner + COLUMNS_PER_CPU_ITEM - 1) / COLUMNS_PER_CPU_ITEM;
    const long column = item % blocks * COLUMNS_PER_CPU_ITEM, above = item / blocks;
    PART_OF_ROW(above)
    const long base = parameters.offset + row * n * inner + column;
    const long columns = inner - column < COLUMNS_PER_CPU_ITEM ? inner - column : COLUMNS_PER_CPU_ITEM;
    GLOBAL C* restrict own = out + above * inner + column;
    for (long j = 0; j < columns; ++j) own[j] = VALUE(base + first * inner + j);
    for (long k = first + 1; k < stop; ++k)
        for (long j = 0; j < columns; ++j) own[j] = combined(OP, own[j], VALUE(base + k * inner + j));
}
#endif

#ifdef HAS_reduce_blocks
// For a GPU: a group reads a block of COLUMNS columns in the order of memory, as many rows of a part at a
// time as it has items for.
KERNEL(256) void reduce_blocks(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    LOCAL C shared[256];
    const long inner = parameters.inner, blocks = (inner + COLUMNS - 1) / COLUMNS;
    const long block = GROUP % blocks, above = GROUP / blocks;
    PART_OF_ROW(above)
    const long column = block * COLUMNS + LANE % COLUMNS;
    const long base = parameters.offset + row * n * inner + column;
    const int height = 256 / COLUMNS, lane_row = LANE / COLUMNS;
    const int active = stop - first < height ? (int)(stop - first) : height;
    C own = (C)0;
    if (lane_row < active && column < inner) {
        long k = first + lane_row;
        own = VALUE(base + k * inner);
        UNROLLED(8) for (k += height; k < stop; k += height)
            own = combined(OP, own, VALUE(base + k * inner));
    }
    shared[LANE] = own;
    for (int left = active; left > 1; left = (left + 1) / 2) {
        const int kept = (left + 1) / 2;
        BARRIER;
        if (lane_row < left / 2) shared[LANE] = combined(OP, shared[LANE], shared[LANE + kept * COLUMNS]);
    }
    if (lane_row == 0 && column < inner) WRITE(out, above * inner + column, TARGET, shared[LANE]);
}
#endif

// For a GPU: LANES items of a group for each row and part. Neighbouring lanes read neighbouring elements,
// or vectors of four where rows and parts are made of them (BY_VEC4), several at a time.
#ifdef HAS_reduce_rows
#if BY_VEC4
#define V VEC4
#define V_WIDTH 4
#define V_AT(index) READ_VEC4(x, index, SOURCE)
#define REDUCED(v)                                         \
    combined(OP, combined(OP, OPERAND(v.x), OPERAND(v.y)), \
             combined(OP, OPERAND(v.z), OPERAND(v.w)))
#else
#define V C
#define V_WIDTH 1
#define V_AT(index) READ(x, index, SOURCE)
#define REDUCED(v) OPERAND(v)
#endif
#define LOADS_IN_FLIGHT 4
#define STRIDE (LANES * V_WIDTH)
KERNEL(256) void reduce_rows(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL void* restrict out) {
    LOCAL C shared[256];
    const int lane = LANE % LANES;
    const long result = GROUP * (256 / LANES) + LANE / LANES;
    PART_OF_ROW(result)
    const long base = parameters.offset + row * n;
    const long vectors = row < parameters.outer ? (stop - first) / V_WIDTH : 0;
    const int active = vectors < LANES ? (int)vectors : LANES;
    C own = (C)0;
    if (lane < active) {
        long k = first + lane * V_WIDTH;
        V vector = V_AT(base + k);
        own = REDUCED(vector);
        k += STRIDE;
        for (; k + (LOADS_IN_FLIGHT - 1) * STRIDE < stop; k += LOADS_IN_FLIGHT * STRIDE) {
            V loaded[LOADS_IN_FLIGHT];
            UNROLL for (int j = 0; j < LOADS_IN_FLIGHT; ++j) loaded[j] = V_AT(base + k + j * STRIDE);
            UNROLL for (int j = 0; j < LOADS_IN_FLIGHT; ++j)
                own = combined(OP, own, REDUCED(loaded[j]));
        }
        for (; k < stop; k += STRIDE) {
            vector = V_AT(base + k);
            own = combined(OP, own, REDUCED(vector));
        }
    }
    shared[LANE] = own;
    UNROLL for (int step = LANES / 2; step > 0; step /= 2) {
        BARRIER;
        if (lane < step && lane + step < active)
            shared[LANE] = combined(OP, shared[LANE], shared[LANE + step]);
    }
    if (lane == 0 && active) WRITE(out, result, TARGET, shared[LANE]);
}
#endif
