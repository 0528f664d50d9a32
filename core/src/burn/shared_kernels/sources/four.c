// Four neighbours in one access of an aligned memory, by READ_FOUR and WRITE_FOUR of the dialect: the index
// of the first is a multiple of four. The last of an array may be fewer.

FUNCTION void write_up_to_four(GLOBAL void* p, int64 i, int64 count, int type, const C* x) {
    if (i + 4 <= count) {
        WRITE_FOUR(p, i, type, x);
        return;
    }
    UNROLL for (int j = 0; j < 4; ++j)
        if (i + j < count) WRITE(p, i + j, type, x[j]);
}
