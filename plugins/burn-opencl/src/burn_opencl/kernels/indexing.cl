// Reading and writing at indices along the middle axis of (outer, length, inner). Reads move elements
// as words of their size. Indices are (outer, count, inner), or a vector for all rows (select).

typedef struct {
    long n, outer, length, count, inner, offset, index_offset, value_offset, is_select, type, index_type,
        update, op;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define INDEX_TYPE ((int)parameters.index_type)
#define UPDATE ((int)parameters.update)
#endif

#define INDEX(position)                                                                  \
    checked_index(read_ulong(indices, parameters.index_offset + (position), INDEX_TYPE), \
                  INDEX_TYPE, parameters.length, error, parameters.op)

#ifdef HAS_gather
KERNEL(64) void gather(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const void* indices,
    GLOBAL void* out, GLOBAL long* error) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const long column = i % parameters.inner, above = i / parameters.inner;
    const long position = above % parameters.count, row = above / parameters.count;
    const long index = INDEX(parameters.is_select ? position : i);
    if (index < 0) return;
    const long element = (row * parameters.length + index) * parameters.inner + column;
    WRITE(out, i, TYPE, READ(x, parameters.offset + element, TYPE));
}
#endif

// An item for each column: the updates of an element take effect in order.
#ifdef HAS_scatter
KERNEL(64) void scatter(
    const Parameters parameters, GLOBAL void* out, GLOBAL const void* indices,
    GLOBAL const void* values, GLOBAL long* error) {
    const long i = ITEM;
    if (i >= parameters.n) return;
    const long column = i % parameters.inner, row = i / parameters.inner;
    for (long k = 0; k < parameters.count; ++k) {
        const long position = (row * parameters.count + k) * parameters.inner + column;
        const long index = INDEX(parameters.is_select ? k : position);
        if (index < 0) continue;
        const long element = (row * parameters.length + index) * parameters.inner + column;
        const C value = READ(values, parameters.value_offset + position, TYPE);
        WRITE(out, element, TYPE, combined(UPDATE, READ(out, element, TYPE), value));
    }
}
#endif

#ifdef HAS_flat_indices
// Rows of indices of the first axes of a tensor, as one flat index each. A row with an index that is out
// of range becomes `limit`, which is out of range too, after the error for the index itself was written.
typedef struct {
    long total, depth, offset, type, target, limit, op, lengths[8];
} FlatParameters;

KERNEL(64) void flat_indices(
    const FlatParameters parameters, GLOBAL const void* indices, GLOBAL void* out,
    GLOBAL long* error) {
    const long item = ITEM;
    if (item >= parameters.total) return;
    const int type = (int)parameters.type;
    ulong flat = 0;
    int is_outside = 0;
    for (long k = 0; k < parameters.depth; ++k) {
        const long position = parameters.offset + item * parameters.depth + k;
        const long length = parameters.lengths[k];
        const long index = checked_index(
            read_ulong(indices, position, type), type, length, error, parameters.op);
        is_outside |= index < 0;
        flat = flat * (ulong)length + (ulong)index;
    }
    write_ulong(out, item, (int)parameters.target, is_outside ? (ulong)parameters.limit : flat);
}
#endif
