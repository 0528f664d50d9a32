// Reading and writing at indices along the middle axis of (outer, length, inner). Reads move elements as
// words of their size. Indices are (outer, count, inner), or a vector for all rows (`is_select`); of
// `parts` neighbours, the two parts of a complex number or one, each has one index.

typedef struct {
    int64 n, length, count, inner, parts, x_offset, index_offset, value_offset, is_select, is_label, op,
        type, index_type, update;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define INDEX_TYPE ((int)parameters.index_type)
#define UPDATE ((int)parameters.update)
#endif

// An index that may count from the end, or a label, which may not.
FUNCTION int64 index_at(
    const Parameters parameters, GLOBAL const void* indices, int64 position, GLOBAL volatile int64* error) {
    const uint64 bits = read_ulong(indices, parameters.index_offset + position, INDEX_TYPE);
    return checked_index_or_label(
        bits, INDEX_TYPE, parameters.length, (int)parameters.is_label, error, parameters.op);
}

#ifdef HAS_gather
KERNEL(GROUP_ITEMS) void gather(
    const Parameters parameters, GLOBAL const void* restrict x, GLOBAL const void* restrict indices,
    GLOBAL void* restrict out, GLOBAL volatile int64* error) {
    const int64 i = ITEM;
    if (i >= parameters.n) return;
    const int64 above = i / parameters.inner, column = i - above * parameters.inner;
    const int64 row = above / parameters.count, position = above - row * parameters.count;
    const int64 index_position = parameters.is_select ? position : i >> (parameters.parts - 1);
    const int64 index = index_at(parameters, indices, index_position, error);
    const int64 element = (row * parameters.length + index) * parameters.inner + column;
    WRITE(out, i, TYPE, index < 0 ? (C)0 : READ(x, parameters.x_offset + element, TYPE));
}
#endif

// An item for each column: the updates of an element take effect in order.
#ifdef HAS_scatter
KERNEL(GROUP_ITEMS) void scatter(
    const Parameters parameters, GLOBAL void* out, GLOBAL const void* indices,
    GLOBAL const void* values, GLOBAL volatile int64* error) {
    const int64 i = ITEM;
    if (i >= parameters.n) return;
    const int64 row = i / parameters.inner, column = i - row * parameters.inner;
    for (int64 k = 0; k < parameters.count; ++k) {
        const int64 position = (row * parameters.count + k) * parameters.inner + column;
        const int64 index_position = parameters.is_select ? k : position >> (parameters.parts - 1);
        const int64 index = index_at(parameters, indices, index_position, error);
        if (index < 0) continue;
        const int64 element = (row * parameters.length + index) * parameters.inner + column;
        const C value = READ(values, parameters.value_offset + position, TYPE);
        WRITE(out, element, TYPE, combined(UPDATE, READ(out, element, TYPE), value));
    }
}
#endif

#ifdef HAS_flat_indices
// Rows of indices of the first axes of a tensor, as one flat index each. A row with an index that is out
// of range becomes `limit`, which is out of range too, after the error for the index itself was written.
typedef struct {
    int64 total, depth, offset, type, target, limit, op, lengths[8];
} FlatParameters;

KERNEL(GROUP_ITEMS) void flat_indices(
    const FlatParameters parameters, GLOBAL const void* indices, GLOBAL void* out,
    GLOBAL volatile int64* error) {
    const int64 item = ITEM;
    if (item >= parameters.total) return;
    const int type = (int)parameters.type;
    uint64 flat = 0;
    int is_outside = 0;
    for (int64 k = 0; k < parameters.depth; ++k) {
        const int64 position = parameters.offset + item * parameters.depth + k;
        const int64 length = parameters.lengths[k];
        const int64 index = checked_index(
            read_ulong(indices, position, type), type, length, error, parameters.op);
        is_outside |= index < 0;
        flat = flat * (uint64)length + (uint64)index;
    }
    write_ulong(out, item, (int)parameters.target, is_outside ? (uint64)parameters.limit : flat);
}
#endif
