// Philox4x32-10 (Salmon et al., 2011). The seed is the key, the offset counts blocks of four words.

__device__ __forceinline__ void philox(
    uint64 seed, uint64 low, uint64 high, uint64 block, uint32 words[4]) {
    const uint64 counter = low + block;
    const uint64 above = high + (counter < low ? 1 : 0);
    uint32 c0 = (uint32)counter, c1 = (uint32)(counter >> 32);
    uint32 c2 = (uint32)above, c3 = (uint32)(above >> 32);
    uint32 k0 = (uint32)seed, k1 = (uint32)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const uint32 high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
        const uint32 high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
        c0 = high1 ^ c1 ^ k0;
        c1 = low1;
        c2 = high0 ^ c3 ^ k1;
        c3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    words[0] = c0;
    words[1] = c1;
    words[2] = c2;
    words[3] = c3;
}

extern "C" __global__ void random_words(
    uint32* out, int64 seed, int64 low, int64 high, int64 count) {
    const int64 block = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * block >= count) return;
    uint32 words[4];
    philox((uint64)seed, (uint64)low, (uint64)high, (uint64)block, words);
    if (4 * block + 4 <= count) {
        *reinterpret_cast<Pack<uint32, 4>*>(out + 4 * block) =
            Pack<uint32, 4>{{words[0], words[1], words[2], words[3]}};
    } else {
        for (int j = 0; 4 * block + j < count; ++j) out[4 * block + j] = words[j];
    }
}

#ifdef T
typedef typename Computed<T>::type C;

// Each step is rounded to the dtype, as the definition of the op has it.
__device__ __forceinline__ C rounded(C x) { return load(convert<T>(x)); }
__device__ __forceinline__ float times(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ double times(double x, double y) { return __dmul_rn(x, y); }
__device__ __forceinline__ float plus(float x, float y) { return __fadd_rn(x, y); }
__device__ __forceinline__ double plus(double x, double y) { return __dadd_rn(x, y); }

__device__ __forceinline__ double fraction_of_two(uint32 first, uint32 second) {
    return (double)(first >> 5) * 7.450580596923828e-09 +
           (double)(second >> 6) * 1.1102230246251565e-16;
}
__device__ __forceinline__ C fraction_of_one(uint32 word) {
    return (C)(word >> (32 - WIDTH)) * ((C)1 / (C)(1u << (WIDTH & 31)));
}

extern "C" __global__ void random_uniform(
    T* out, int64 seed, int64 low_block, int64 high_block, double low, double span, double largest,
    int64 scales, int64 count) {
    const int64 block = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    const int each = WIDTH == 53 ? 2 : 4;
    if (each * block >= count) return;
    uint32 words[4];
    philox((uint64)seed, (uint64)low_block, (uint64)high_block, (uint64)block, words);
    const C start = load(convert<T>(low)), length = load(convert<T>(span));
    const C limit = load(convert<T>(largest));
#pragma unroll
    for (int j = 0; j < each; ++j) {
        C x = WIDTH == 53 ? (C)fraction_of_two(words[2 * j & 3], words[(2 * j + 1) & 3])
                          : fraction_of_one(words[j]);
        if (scales) {
            x = rounded(plus(rounded(times(x, length)), start));
            x = x < limit ? x : limit;
        }
        if (each * block + j < count) out[each * block + j] = convert<T>(x);
    }
}

__device__ __forceinline__ C number_at(
    uint64 seed, uint64 low_block, uint64 high_block, uint64 index) {
    uint32 words[4];
    const int each = WIDTH == 53 ? 2 : 4;
    philox(seed, low_block, high_block, index / each, words);
    const int j = (int)(index % each);
    if (WIDTH == 53) return (C)(j ? fraction_of_two(words[2], words[3])
                                  : fraction_of_two(words[0], words[1]));
    return fraction_of_one(j == 0 ? words[0] : j == 1 ? words[1] : j == 2 ? words[2] : words[3]);
}

__device__ __forceinline__ void make_pair(C u, C v, C mean, C deviation, T* first, T* second) {
    const C radius = sqrt(log((C)1 - u) * (C)-2);
    const C angle = v * (C)6.283185307179586;
    *first = convert<T>(radius * cos(angle) * deviation + mean);
    *second = convert<T>(radius * sin(angle) * deviation + mean);
}

// A thread for each pair, by the transform of Box and Muller.
extern "C" __global__ void random_normal(
    T* out, int64 seed, int64 low_block, int64 high_block, double mean, double deviation,
    int64 half, int64 count) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= half) return;
    const C u = number_at((uint64)seed, (uint64)low_block, (uint64)high_block, (uint64)i);
    const C v = number_at((uint64)seed, (uint64)low_block, (uint64)high_block, (uint64)(i + half));
    T second;
    make_pair(u, v, (C)mean, (C)deviation, out + i, &second);
    if (i + half < count) out[i + half] = second;
}

// A thread for all pairs of a block of words, where the second half begins with a block, and each
// number has its pair.
extern "C" __global__ void random_normal_blocks(
    T* out, int64 seed, int64 low_block, int64 high_block, double mean, double deviation,
    int64 half, int64 threads) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= threads) return;
    const int each = WIDTH == 53 ? 2 : 4;
    uint32 u[4], v[4];
    philox((uint64)seed, (uint64)low_block, (uint64)high_block, (uint64)i, u);
    philox((uint64)seed, (uint64)low_block, (uint64)high_block, (uint64)(i + threads), v);
    T* first = out + i * each;
#pragma unroll
    for (int j = 0; j < each; ++j) {
        const C x = WIDTH == 53 ? (C)fraction_of_two(u[2 * j & 3], u[(2 * j + 1) & 3])
                                : fraction_of_one(u[j]);
        const C y = WIDTH == 53 ? (C)fraction_of_two(v[2 * j & 3], v[(2 * j + 1) & 3])
                                : fraction_of_one(v[j]);
        make_pair(x, y, (C)mean, (C)deviation, first + j, first + half + j);
    }
}
#endif
