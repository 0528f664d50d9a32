// Sparse linear maps along the middle axis of (outer, n, inner): a table has, for each output, the
// indices of its terms, -1 for an absent one, and their weights.

typedef struct {
    long total, n, inner, outputs, count, offset, source, target;
} Parameters;

KERNEL(64)
void weighted_sums(
    const Parameters parameters, GLOBAL const void* x, GLOBAL const int* indices,
    GLOBAL const C* weights, GLOBAL void* out) {
    const long item = ITEM, inner = parameters.inner, count = parameters.count;
    if (item >= parameters.total) return;
    const long above = item / inner, column = item - above * inner;
    const long row = above / parameters.outputs, output = above - row * parameters.outputs;
    const long base = parameters.offset + row * parameters.n * inner + column;
    C sum = (C)0;
    for (long k = output * count; k < (output + 1) * count; ++k) {
        const int index = indices[k];
        if (index < 0) continue;
        sum += weights[k] * READ(x, base + index * inner, (int)parameters.source);
    }
    WRITE(out, item, (int)parameters.target, sum);
}
