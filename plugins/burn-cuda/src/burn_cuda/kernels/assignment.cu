// E: elements, I: indices, SELECTS and PARTS as in indexing.cu. The last of several values for one element wins:
// `find_writers` finds the index of that value for each element, `assign` writes it.

__device__ __forceinline__ int64 target_offset(
    int64 k, const I* indices, int64 length, int64 count, int64 inner, volatile int64* flag,
    int64 op) {
    const int64 row = k / inner;
    const int64 outer = row / count;
    const int64 position = SELECTS ? row - outer * count : k / PARTS;
    const int64 index = checked_index(signed_index(indices[position]), length, flag, op);
    return index < 0 ? -1 : (outer * length + index) * inner + (k - row * inner);
}

extern "C" __global__ void find_writers(
    uint64* writers, const I* __restrict__ indices, int64 length, int64 count, int64 inner,
    int64 n, int64* flag, int64 op) {
    const int64 k = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const int64 target = target_offset(k, indices, length, count, inner, flag, op);
    if (target >= 0) atomicMax(writers + target, (uint64)k + 1);
}

extern "C" __global__ void assign(
    E* out, const uint64* __restrict__ writers, const E* __restrict__ values, int64 size) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < size && writers[i]) out[i] = values[writers[i] - 1];
}
