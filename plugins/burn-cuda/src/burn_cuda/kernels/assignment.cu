// E: elements, I: indices, SELECTS as in indexing.cu. Of several values for a place the last wins:
// first each place finds out which value that is, then it is written.

__device__ __forceinline__ int64 place_of(
    int64 k, const I* indices, int64 length, int64 count, int64 inner, volatile int64* flag,
    int64 call) {
    const int64 row = k / inner;
    const int64 outer = row / count;
    const int64 at = SELECTS ? row - outer * count : k;
    const int64 index = checked_index(signed_index(indices[at]), length, flag, call);
    return index < 0 ? -1 : (outer * length + index) * inner + (k - row * inner);
}

extern "C" __global__ void find_writers(
    uint64* writers, const I* __restrict__ indices, int64 length, int64 count, int64 inner,
    int64 n, int64* flag, int64 call) {
    const int64 k = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (k >= n) return;
    const int64 place = place_of(k, indices, length, count, inner, flag, call);
    if (place >= 0) atomicMax(writers + place, (uint64)k + 1);
}

extern "C" __global__ void assign(
    E* out, const uint64* __restrict__ writers, const E* __restrict__ values, int64 size) {
    const int64 place = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (place < size && writers[place]) out[place] = values[writers[place] - 1];
}
