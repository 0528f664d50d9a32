// The gradient of max pooling of (n, elements): each element of g is added at its index in the image. An
// item computes an image, so the terms of an element are added in order.

typedef struct {
    int64 n, elements, windows, g_offset, index_offset, type, index_type, op;
} Parameters;
#ifndef TYPE
#define TYPE ((int)parameters.type)
#define INDEX_TYPE ((int)parameters.index_type)
#endif

KERNEL(GROUP_ITEMS) void max_pool_grad(
    const Parameters parameters, GLOBAL const void* g, GLOBAL const void* indices,
    GLOBAL void* out, GLOBAL volatile int64* error) {
    const int64 item = ITEM, windows = parameters.windows, elements = parameters.elements;
    if (item >= parameters.n) return;
    for (int64 i = 0; i < elements; ++i) WRITE(out, item * elements + i, TYPE, (C)0);
    for (int64 i = item * windows; i < (item + 1) * windows; ++i) {
        const uint64 bits = read_ulong(indices, parameters.index_offset + i, INDEX_TYPE);
        const int64 index = checked_index(bits, INDEX_TYPE, elements, error, parameters.op);
        if (index < 0) continue;
        const int64 element = item * elements + index;
        WRITE(out, element, TYPE, READ(out, element, TYPE) + READ(g, parameters.g_offset + i, TYPE));
    }
}
