// Philox4x32-10 (Salmon et al., 2011). The seed is the key, the offset a count of blocks of four words.
// A captured program reads both from the memory of the device, and adds the offset that a kernel gets.

struct Counter {
    uint64 seed, low, high;
};

__device__ __forceinline__ Counter counter_of(int64 seed, int64 low, int64 high, const int64* drawn) {
    if (!drawn) return Counter{(uint64)seed, (uint64)low, (uint64)high};
    const uint64 sum = (uint64)low + (uint64)drawn[1];
    const uint64 carry = sum < (uint64)low ? 1 : 0;
    return Counter{(uint64)drawn[0], sum, (uint64)high + (uint64)drawn[2] + carry};
}

__device__ __forceinline__ void philox(
    const Counter& start, uint64 block, uint32 words[4]) {
    const uint64 counter = start.low + block;
    const uint64 above = start.high + (counter < start.low ? 1 : 0);
    uint32 c0 = (uint32)counter, c1 = (uint32)(counter >> 32);
    uint32 c2 = (uint32)above, c3 = (uint32)(above >> 32);
    uint32 k0 = (uint32)start.seed, k1 = (uint32)(start.seed >> 32);
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
    uint32* out, int64 seed, int64 low, int64 high, const int64* drawn, int64 count) {
    const int64 block = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * block >= count) return;
    uint32 words[4];
    philox(counter_of(seed, low, high, drawn), (uint64)block, words);
    if (4 * block + 4 <= count) {
        *reinterpret_cast<Pack<uint32, 4>*>(out + 4 * block) =
            Pack<uint32, 4>{{words[0], words[1], words[2], words[3]}};
    } else {
        for (int j = 0; 4 * block + j < count; ++j) out[4 * block + j] = words[j];
    }
}

#ifdef T
typedef typename Computed<T>::type C;

// Each step is rounded to the dtype, as in the definition of the op.
__device__ __forceinline__ C rounded(C x) { return load(convert<T>(x)); }
__device__ __forceinline__ float multiply_rounded(float x, float y) { return __fmul_rn(x, y); }
__device__ __forceinline__ double multiply_rounded(double x, double y) { return __dmul_rn(x, y); }
__device__ __forceinline__ float add_rounded(float x, float y) { return __fadd_rn(x, y); }
__device__ __forceinline__ double add_rounded(double x, double y) { return __dadd_rn(x, y); }

__device__ __forceinline__ double uniform53(uint32 first, uint32 second) {
    return (double)(first >> 5) * 7.450580596923828e-09 +
           (double)(second >> 6) * 1.1102230246251565e-16;
}
__device__ __forceinline__ C uniform_of_word(uint32 word) {
    return (C)(word >> (32 - WIDTH)) * ((C)1 / (C)(1u << (WIDTH & 31)));
}

extern "C" __global__ void random_uniform(
    T* out, int64 seed, int64 low_block, int64 high_block, const int64* drawn, double low,
    double width, double largest, int64 is_scaled, int64 count) {
    const int64 block = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    const int each = WIDTH == 53 ? 2 : 4;
    if (each * block >= count) return;
    uint32 words[4];
    philox(counter_of(seed, low_block, high_block, drawn), (uint64)block, words);
    const C start = load(convert<T>(low)), length = load(convert<T>(width));
    const C limit = load(convert<T>(largest));
    Pack<T, each> numbers;
#pragma unroll
    for (int j = 0; j < each; ++j) {
        C x = WIDTH == 53 ? (C)uniform53(words[2 * j & 3], words[(2 * j + 1) & 3])
                          : uniform_of_word(words[j]);
        if (is_scaled) {
            x = rounded(add_rounded(rounded(multiply_rounded(x, length)), start));
            x = x < limit ? x : limit;
        }
        numbers.values[j] = convert<T>(x);
    }
    if (each * block + each <= count) {
        *reinterpret_cast<Pack<T, each>*>(out + each * block) = numbers;
    } else {
#pragma unroll
        for (int j = 0; j < each; ++j)
            if (each * block + j < count) out[each * block + j] = numbers.values[j];
    }
}

// Two normal numbers by the Box-Muller transform.
__device__ __forceinline__ void box_muller(C u, C v, C mean, C deviation, T* first, T* second) {
    const C radius = sqrt(log((C)1 - u) * (C)-2);
    C sine, cosine;
    sincospi(v + v, &sine, &cosine);
    *first = convert<T>(radius * cosine * deviation + mean);
    *second = convert<T>(radius * sine * deviation + mean);
}

__device__ __forceinline__ C uniform_at(const uint32* words, int j) {
    return WIDTH == 53 ? (C)uniform53(words[2 * j], words[2 * j + 1])
                       : uniform_of_word(words[j]);
}

// A thread pairs the numbers of one block of words with those half of the count later, which may start
// within a block. The last number may have no pair.
extern "C" __global__ void random_normal(
    T* out, int64 seed, int64 low_block, int64 high_block, const int64* drawn, double mean,
    double deviation, int64 half, int64 count) {
    const int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    constexpr int each = WIDTH == 53 ? 2 : 4;
    const int64 start = i * each;
    if (start >= half) return;
    uint32 first_words[4], words[8];
    const Counter counter = counter_of(seed, low_block, high_block, drawn);
    philox(counter, (uint64)i, first_words);
    const uint64 block = (uint64)(start + half) / each;
    const int shift = (int)(half % each);
    philox(counter, block, words);
    if (shift) philox(counter, block + 1, words + 4);
    Pack<T, each> first, second;
#pragma unroll
    for (int j = 0; j < each; ++j) {
        C v = uniform_at(words, j);
#pragma unroll
        for (int k = 1; k < each; ++k)
            if (shift == k) v = uniform_at(words, j + k);
        box_muller(uniform_at(first_words, j), v, (C)mean, (C)deviation, &first.values[j],
            &second.values[j]);
    }
    T* second_half = out + half + start;
    if (start + each <= half && half + start + each <= count && shift == 0) {
        *reinterpret_cast<Pack<T, each>*>(out + start) = first;
        *reinterpret_cast<Pack<T, each>*>(second_half) = second;
        return;
    }
#pragma unroll
    for (int j = 0; j < each; ++j) {
        if (start + j < half) out[start + j] = first.values[j];
        if (start + j < half && half + start + j < count) second_half[j] = second.values[j];
    }
}
#endif
