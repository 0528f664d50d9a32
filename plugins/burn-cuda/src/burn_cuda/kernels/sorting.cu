// T: elements, K: unsigned integers of the same size, O: indices. EQUAL_ZEROS: 1 where zeros of both
// signs have one key, 0 where keys are converted back to elements.

#ifdef KEYS
// Unsigned integers in the order of the elements; NaN is greatest. `make_row_keys` puts the row into
// the upper half, which gives the order within rows.
template <class W, int width>
__device__ __forceinline__ W float_key(W bits, bool nan) {
    const W sign = (W)1 << (width - 1);
    if (nan) return (W)~(W)0;
    if (EQUAL_ZEROS && (W)(bits << 1) == 0) return sign;
    return bits & sign ? (W)~bits : (W)(bits | sign);
}
__device__ __forceinline__ unsigned short key(float16 x) {
    const float wide = widen(x);
    return float_key<unsigned short, 16>(x.bits, wide != wide);
}
__device__ __forceinline__ unsigned short key(bfloat16 x) {
    const float wide = widen(x);
    return float_key<unsigned short, 16>(x.bits, wide != wide);
}
__device__ __forceinline__ unsigned int key(float x) {
    return float_key<unsigned int, 32>(float_as_bits(x), x != x);
}
__device__ __forceinline__ uint64 key(double x) {
    return float_key<uint64, 64>(double_as_bits(x), x != x);
}
__device__ __forceinline__ unsigned char key(bool x) { return x ? 1 : 0; }
#ifdef FLOATING
__device__ __forceinline__ T element(K key) {
    const K sign = (K)1 << (8 * sizeof(K) - 1);
    const K bits = key & sign ? (K)(key ^ sign) : (K)~key;
    union {
        K bits;
        T value;
    } both;
    both.bits = bits;
    return both.value;
}
#else
__device__ __forceinline__ T element(K key) {
    return (T)(IsSigned<T>::value ? (K)(key ^ ((K)1 << (8 * sizeof(K) - 1))) : key);
}
#endif
template <class N>
__device__ __forceinline__ K key(N x) {
    return IsSigned<N>::value ? (K)((K)x ^ ((K)1 << (8 * sizeof(K) - 1))) : (K)x;
}

extern "C" __global__ void make_keys(
    const T* __restrict__ x, K* __restrict__ keys, int64 descending, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const K own = key(x[i]);
    keys[i] = descending ? (K)~own : own;
}
extern "C" __global__ void from_keys(
    const KEYS* __restrict__ keys, T* __restrict__ out, int64 descending, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = element(descending ? (K)~(K)keys[i] : (K)keys[i]);
}
extern "C" __global__ void make_row_keys(
    const T* __restrict__ x, uint64* __restrict__ keys, int64 descending, int64 length, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const K own = key(x[i]);
    keys[i] = (uint64)(i / length) << 32 | (uint64)(K)(descending ? ~own : own);
}
#else
// The row of the k-th element in order, for a second, stable sort by rows.
extern "C" __global__ void rows_of(
    const int64* __restrict__ order, uint64* __restrict__ rows, int64 length, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) rows[i] = (uint64)(order[i] / length);
}
extern "C" __global__ void compose_orders(
    const int64* __restrict__ first, const int64* __restrict__ second, int64* __restrict__ out,
    int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = first[second[i]];
}
extern "C" __global__ void indices_in_rows(
    const int64* __restrict__ order, O* __restrict__ out, int64 length, int64 n) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (O)(order[i] % length);
}
#endif
