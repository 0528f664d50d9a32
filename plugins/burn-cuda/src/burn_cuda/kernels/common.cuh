// Types and conversions that all kernels share.
//
// No CUDA header is included: compiling is several times as fast without. The tests define
// BURN_EMULATED where a host compiler stands in for the device, and bring its conversions.

typedef long long int64;
typedef unsigned long long uint64;
typedef unsigned int uint32;

struct float16 {
    unsigned short bits;
};
struct bfloat16 {
    unsigned short bits;
};

// An element of 16 bytes that kernels move but do not compute with.
struct Word128 {
    uint64 low, high;
};

#ifdef BURN_EMULATED
__device__ inline float widen(float16 x) { return emulated_from_half(x.bits); }
__device__ inline float16 narrow_half(float x) { return float16{emulated_to_half(x)}; }
__device__ inline float bits_as_float(uint32 bits) { return emulated_as_float(bits); }
__device__ inline uint32 float_as_bits(float x) { return emulated_as_bits(x); }
__device__ inline double bits_as_double(uint64 bits) { return emulated_as_double(bits); }
__device__ inline uint64 double_as_bits(double x) { return emulated_as_bits(x); }
#else
__device__ __forceinline__ float widen(float16 x) {
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
    return result;
}
__device__ __forceinline__ float16 narrow_half(float x) {
    float16 result;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
    return result;
}
__device__ __forceinline__ float bits_as_float(uint32 bits) { return __uint_as_float(bits); }
__device__ __forceinline__ uint32 float_as_bits(float x) { return __float_as_uint(x); }
__device__ __forceinline__ double bits_as_double(uint64 bits) {
    return __longlong_as_double((int64)bits);
}
__device__ __forceinline__ uint64 double_as_bits(double x) {
    return (uint64)__double_as_longlong(x);
}
#endif

__device__ __forceinline__ float widen(bfloat16 x) { return bits_as_float((uint32)x.bits << 16); }

// Rounds to nearest, ties to even.
__device__ __forceinline__ bfloat16 narrow_bfloat(float x) {
#if !defined(BURN_EMULATED) && __CUDA_ARCH__ >= 800
    bfloat16 result;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
    return result;
#else
    uint32 bits = float_as_bits(x);
    if (x != x) return bfloat16{(unsigned short)((bits >> 16) | 0x40u)};
    return bfloat16{(unsigned short)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
#endif
}

// The type that elements are computed in: float for 16-bit floats.
template <class T>
struct Computed {
    typedef T type;
    static const bool floating = false;
};
template <>
struct Computed<float> {
    typedef float type;
    static const bool floating = true;
};
template <>
struct Computed<double> {
    typedef double type;
    static const bool floating = true;
};
template <>
struct Computed<float16> {
    typedef float type;
    static const bool floating = true;
};
template <>
struct Computed<bfloat16> {
    typedef float type;
    static const bool floating = true;
};

template <class T>
__device__ __forceinline__ T load(T x) {
    return x;
}
__device__ __forceinline__ float load(float16 x) { return widen(x); }
__device__ __forceinline__ float load(bfloat16 x) { return widen(x); }

// The least and the greatest integer, and the first double that is greater than both.
template <class T>
struct Limits;
#define BURN_LIMITS(T, LOW, HIGH, BOUND)                       \
    template <>                                                \
    struct Limits<T> {                                         \
        __device__ static T low() { return LOW; }              \
        __device__ static T high() { return HIGH; }            \
        __device__ static double bound() { return BOUND; }     \
    };
BURN_LIMITS(signed char, -128, 127, 128.0)
BURN_LIMITS(short, -32768, 32767, 32768.0)
BURN_LIMITS(int, -2147483647 - 1, 2147483647, 2147483648.0)
BURN_LIMITS(long long, -9223372036854775807LL - 1, 9223372036854775807LL, 9223372036854775808.0)
BURN_LIMITS(unsigned char, 0, 255, 256.0)
BURN_LIMITS(unsigned short, 0, 65535, 65536.0)
BURN_LIMITS(unsigned int, 0, 4294967295u, 4294967296.0)
BURN_LIMITS(unsigned long long, 0, 18446744073709551615ull, 18446744073709551616.0)

template <class T>
struct Saturates {
    static const bool value = false;
};
#define BURN_INTEGER(T)                  \
    template <>                          \
    struct Saturates<T> {                \
        static const bool value = true;  \
    };
BURN_INTEGER(signed char)
BURN_INTEGER(short)
BURN_INTEGER(int)
BURN_INTEGER(long long)
BURN_INTEGER(unsigned char)
BURN_INTEGER(unsigned short)
BURN_INTEGER(unsigned int)
BURN_INTEGER(unsigned long long)

// The conversions of the op cast: float to integer saturates, and NaN becomes 0.
template <class O, bool saturates>
struct Conversion {
    template <class T>
    __device__ __forceinline__ static O of(T x) {
        return (O)x;
    }
};
template <class O>
struct Conversion<O, true> {
    template <class T>
    __device__ __forceinline__ static O of(T x) {
        if (x != x) return (O)0;
        if (x >= (T)Limits<O>::bound()) return Limits<O>::high();
        if (x < (T)Limits<O>::low()) return Limits<O>::low();
        return (O)x;
    }
};
template <>
struct Conversion<bool, false> {
    template <class T>
    __device__ __forceinline__ static bool of(T x) {
        return x != (T)0;
    }
};
template <>
struct Conversion<float16, false> {
    template <class T>
    __device__ __forceinline__ static float16 of(T x) {
        return narrow_half((float)x);
    }
};
template <>
struct Conversion<bfloat16, false> {
    template <class T>
    __device__ __forceinline__ static bfloat16 of(T x) {
        return narrow_bfloat((float)x);
    }
};

template <class O, class T>
__device__ __forceinline__ O convert(T x) {
    return Conversion<O, Computed<T>::floating && Saturates<O>::value>::of(x);
}

template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
    T values[N];
};

// The index from the start of the axis. One out of range is written to the flag, and -1 returned.
// The flag is pinned host memory, which the host reads and resets when it next waits for the device.
__device__ __forceinline__ int64 checked_index(
    int64 index, int64 length, volatile int64* flag, int64 op) {
    if (index >= 0 && index < length) return index;
    if (index < 0 && index >= -length) return index + length;
    flag[1] = index;
    flag[2] = length;
    flag[0] = op;
    return -1;
}
// The same for a class index, which may not be negative.
__device__ __forceinline__ int64 checked_class(
    int64 index, int64 count, volatile int64* flag, int64 op) {
    if (index >= 0 && index < count) return index;
    flag[1] = index;
    flag[2] = count;
    flag[0] = op;
    return -1;
}
template <class I>
__device__ __forceinline__ int64 signed_index(I index) {
    return (int64)index;
}
__device__ __forceinline__ int64 signed_index(unsigned long long index) {
    return index > 9223372036854775807ull ? 9223372036854775807LL : (int64)index;
}

// Quotient of a dividend below 2^31 by a divisor whose factor and shift the host has computed
// (Granlund and Montgomery, 1994). The lower half of `divider` is the factor, the upper the shift.
__device__ __forceinline__ uint32 quotient(uint32 x, uint64 divider) {
    return (__umulhi(x, (uint32)divider) + x) >> (uint32)(divider >> 32);
}

// Loads four elements a stride apart, in one access where they are aligned and adjacent.
template <class T>
__device__ __forceinline__ void load_four(T values[4], const T* source, int64 stride) {
    if (stride == 1 && ((uint64)source & (4 * sizeof(T) - 1)) == 0) {
        const Pack<T, 4> pack = *reinterpret_cast<const Pack<T, 4>*>(source);
#pragma unroll
        for (int j = 0; j < 4; ++j) values[j] = pack.values[j];
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] = source[j * stride];
}
template <class T>
__device__ __forceinline__ void store_four(T* target, const T values[4], int64 stride) {
    if (stride == 1 && ((uint64)target & (4 * sizeof(T) - 1)) == 0) {
        Pack<T, 4> pack;
#pragma unroll
        for (int j = 0; j < 4; ++j) pack.values[j] = values[j];
        *reinterpret_cast<Pack<T, 4>*>(target) = pack;
        return;
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) target[j * stride] = values[j];
}
