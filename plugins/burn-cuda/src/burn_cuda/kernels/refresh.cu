// What a program reads anew at each run: numbers, and copies of the inputs whose addresses change.
//
// The launch brings all of it by value, so that no memory of the host has to outlive the call. The
// words are the numbers, and three for each copy: its source, its target, and how many bytes.

struct Words {
    int64 values[WORDS];
};

extern "C" __global__ void refresh(const Words words, int64* numbers, int64 count) {
    const int64 start = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    const int64 step = (int64)gridDim.x * blockDim.x;
    if (blockIdx.y == 0) {
        for (int64 i = start; i < count; i += step) numbers[i] = words.values[i];
        return;
    }
    const int64* copy = words.values + count + 3 * (blockIdx.y - 1);
    const uint64 source = (uint64)copy[0], target = (uint64)copy[1];
    const int64 bytes = copy[2];
    if (((source | target | (uint64)bytes) & 15) == 0) {
        for (int64 i = start; i < bytes / 16; i += step)
            ((Word128*)target)[i] = ((const Word128*)source)[i];
    } else {
        for (int64 i = start; i < bytes; i += step)
            ((unsigned char*)target)[i] = ((const unsigned char*)source)[i];
    }
}
