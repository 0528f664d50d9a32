// The device functions of CUDA for a host compiler. No header of the standard library is included:
// parsing it would take longer than compiling a kernel.
typedef unsigned long emulated_size;
extern "C" {
void* memcpy(void*, const void*, emulated_size) noexcept;
double exp(double) noexcept; double exp2(double) noexcept; double expm1(double) noexcept; double log(double) noexcept;
double log1p(double) noexcept; double log2(double) noexcept; double log10(double) noexcept;
double sqrt(double) noexcept; double sin(double) noexcept; double cos(double) noexcept;
double tan(double) noexcept; double sinh(double) noexcept; double cosh(double) noexcept;
double tanh(double) noexcept; double asin(double) noexcept; double acos(double) noexcept;
double atan(double) noexcept; double asinh(double) noexcept; double acosh(double) noexcept;
double atanh(double) noexcept; double erf(double) noexcept; double floor(double) noexcept;
double ceil(double) noexcept; double trunc(double) noexcept; double rint(double) noexcept;
double fabs(double) noexcept; double fmax(double, double) noexcept; double fmod(double, double) noexcept;
double pow(double, double) noexcept; double copysign(double, double) noexcept;
double atan2(double, double) noexcept; double hypot(double, double) noexcept;
double fma(double, double, double) noexcept;
}
#define BURN_ONE(name) static inline float name(float x) { return __builtin_##name##f(x); }
#define BURN_TWO(name) \
    static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
BURN_ONE(exp) BURN_ONE(exp2) BURN_ONE(expm1) BURN_ONE(log) BURN_ONE(log1p) BURN_ONE(log2) BURN_ONE(log10)
BURN_ONE(sqrt) BURN_ONE(sin) BURN_ONE(cos) BURN_ONE(tan) BURN_ONE(sinh) BURN_ONE(cosh)
BURN_ONE(tanh) BURN_ONE(asin) BURN_ONE(acos) BURN_ONE(atan) BURN_ONE(asinh) BURN_ONE(acosh)
BURN_ONE(atanh) BURN_ONE(erf) BURN_ONE(floor) BURN_ONE(ceil) BURN_ONE(trunc) BURN_ONE(rint)
BURN_ONE(fabs)
BURN_TWO(fmax) BURN_TWO(fmod) BURN_TWO(pow) BURN_TWO(copysign) BURN_TWO(atan2) BURN_TWO(hypot)

static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }

#define BURN_EMULATED 1
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __restrict__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Index3 {
    unsigned x, y, z;
};
extern Index3 threadIdx, blockIdx, blockDim, gridDim;

static float emulated_as_float(unsigned bits) { float x; memcpy(&x, &bits, 4); return x; }
static unsigned emulated_as_bits(float x) { unsigned bits; memcpy(&bits, &x, 4); return bits; }
static double emulated_as_double(unsigned long long bits) { double x; memcpy(&x, &bits, 8); return x; }
static unsigned long long emulated_as_bits(double x) { unsigned long long b; memcpy(&b, &x, 8); return b; }
static float emulated_from_half(unsigned short half) {
    const unsigned sign = (unsigned)(half & 0x8000u) << 16, exponent = (half >> 10) & 31u, rest = half & 1023u;
    if (exponent == 31) return emulated_as_float(sign | 0x7f800000u | rest << 13);
    const float magnitude = exponent ? __builtin_ldexpf((float)(rest | 1024u), (int)exponent - 25) : __builtin_ldexpf((float)rest, -24);
    return sign ? -magnitude : magnitude;
}
static unsigned short emulated_to_half(float x) {
    const unsigned bits = emulated_as_bits(x);
    const unsigned short sign = (unsigned short)((bits >> 16) & 0x8000u);
    if (x != x) return sign | 0x7e00u;
    const float magnitude = __builtin_fabsf(x);
    if (magnitude >= 65520.0f) return sign | 0x7c00u;
    if (magnitude < 6.103515625e-05f) return sign | (unsigned short)__builtin_rintf(__builtin_ldexpf(magnitude, 24));
    const unsigned rounded = (bits & 0x7fffffffu) + 0xfffu + ((bits >> 13) & 1u);
    return sign | (unsigned short)((rounded - 0x38000000u) >> 13);
}


// Fibers: see fibers.cpp.
enum State { READY, AT_BLOCK, AT_WARP, DONE };
extern unsigned running;
extern unsigned long long shuffled[1024];
void wait_at(State state);
void run_grid(const unsigned* grid, const unsigned* block, bool waits, void (*kernel)());
static void __syncthreads() { wait_at(AT_BLOCK); }
static void __syncwarp(unsigned = 0) { wait_at(AT_WARP); }
static void __threadfence() {}
template <class T>
static T exchanged(T value, unsigned from) {
    memcpy(&shuffled[running], &value, sizeof(T));
    wait_at(AT_WARP);
    T result;
    memcpy(&result, &shuffled[from], sizeof(T));
    wait_at(AT_WARP);
    return result;
}
template <class T>
static T __shfl_xor_sync(unsigned, T value, int mask) { return exchanged(value, running ^ mask); }
template <class T>
static T __shfl_down_sync(unsigned, T value, int delta) {
    const unsigned lane = running & 31u;
    return exchanged(value, lane + delta < 32 ? running + delta : running);
}
template <class T>
static T __shfl_up_sync(unsigned, T value, int delta) {
    const unsigned lane = running & 31u;
    return exchanged(value, (int)lane >= delta ? running - delta : running);
}
template <class T>
static T __shfl_sync(unsigned, T value, int lane) { return exchanged(value, (running & ~31u) + lane); }

static int __any_sync(unsigned, int truth) {
    int all = truth != 0;
    for (int step = 16; step > 0; step /= 2) all |= __shfl_xor_sync(0xffffffffu, all, step);
    return all;
}

template <class T, class V>
static T atomicAdd(T* address, V value) { const T old = *address; *address = old + (T)value; return old; }
template <class T, class V>
static T atomicMax(T* address, V value) { const T old = *address; if (old < (T)value) *address = (T)value; return old; }
template <class T>
static T atomicCAS(T* address, T expected, T value) { const T old = *address; if (old == expected) *address = value; return old; }
template <class T, class V>
static T atomicExch(T* address, V value) { const T old = *address; *address = (T)value; return old; }

static void sincospi(double x, double* sine, double* cosine) {
    *sine = sin(x * 3.141592653589793);
    *cosine = cos(x * 3.141592653589793);
}
static void sincospi(float x, float* sine, float* cosine) {
    double s, c;
    sincospi((double)x, &s, &c);
    *sine = (float)s;
    *cosine = (float)c;
}
static float __fmul_rn(float x, float y) { return x * y; }
static double __dmul_rn(double x, double y) { return x * y; }
static float __fadd_rn(float x, float y) { return x + y; }
static double __dadd_rn(double x, double y) { return x + y; }
static unsigned __umulhi(unsigned x, unsigned y) { return (unsigned)((unsigned long long)x * y >> 32); }
static unsigned long long __umul64hi(unsigned long long x, unsigned long long y) { return (unsigned long long)((unsigned __int128)x * y >> 64); }
template <class T>
static T __ldg(const T* address) { return *address; }
#define rsqrtf(x) (1.0f / sqrtf(x))

