// Rows of indices of the first axes of a tensor, as one index each. A row with an index that is out
// of range becomes `beyond`, which is out of range too.

typedef struct {
    long total, depth, start, type, target, beyond, lengths[8];
} Parameters;

KERNEL(64)
void flat_places(const Parameters parameters, GLOBAL const void* indices, GLOBAL void* out) {
    const long item = ITEM;
    if (item >= parameters.total) return;
    const int type = (int)parameters.type;
    ulong place = 0;
    int wrong = 0;
    for (long k = 0; k < parameters.depth; ++k) {
        const ulong bits = read_ulong(indices, parameters.start + item * parameters.depth + k, type);
        const long length = parameters.lengths[k], index = (long)bits;
        const int negative = index < 0 && type != UINT64;
        const ulong front = negative ? bits + (ulong)length : bits;
        wrong |= front >= (ulong)length;
        place = place * (ulong)length + front;
    }
    write_ulong(out, item, (int)parameters.target, wrong ? (ulong)parameters.beyond : place);
}
