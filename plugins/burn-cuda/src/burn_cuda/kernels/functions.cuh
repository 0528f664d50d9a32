// Elementwise functions that C++ lacks or defines in another way.

// NaN propagates, unlike in fmax and fmin.
template <class C>
__device__ __forceinline__ C maximum(C x, C y) {
    return x != x ? x : (y != y ? y : (x < y ? y : x));
}
template <class C>
__device__ __forceinline__ C minimum(C x, C y) {
    return x != x ? x : (y != y ? y : (y < x ? y : x));
}

// Floor of the exact quotient, computed like NumPy's floor_divide.
template <class C>
__device__ C floor_divide(C x, C y) {
    if (y == (C)0) return x / y;
    const C remainder = fmod(x, y);
    C quotient = (x - remainder) / y;
    if (remainder != (C)0 && (remainder < (C)0) != (y < (C)0)) quotient -= (C)1;
    if (quotient == (C)0) return copysign((C)0, x / y);
    const C whole = floor(quotient);
    return quotient - whole > (C)0.5 ? whole + (C)1 : whole;
}
template <class C>
__device__ C floor_mod(C x, C y) {
    const C remainder = fmod(x, y);
    if (remainder == (C)0) return copysign((C)0, y);
    return (remainder < (C)0) != (y < (C)0) ? remainder + y : remainder;
}

template <class T>
struct IsSigned {
    static const bool value = (T)-1 < (T)0;
};

template <class T>
__device__ __forceinline__ T integer_floor_divide(T x, T y) {
    if (y == (T)0) return (T)0;
    if (IsSigned<T>::value && y == (T)-1) return (T)(0 - (uint64)x);
    const T quotient = (T)(x / y);
    const bool down = x % y != 0 && (x < (T)0) != (y < (T)0);
    return down ? (T)(quotient - 1) : quotient;
}
template <class T>
__device__ __forceinline__ T integer_floor_mod(T x, T y) {
    if (y == (T)0 || (IsSigned<T>::value && y == (T)-1)) return (T)0;
    const T remainder = (T)(x % y);
    return remainder != (T)0 && (remainder < (T)0) != (y < (T)0) ? (T)(remainder + y) : remainder;
}
template <class T>
__device__ __forceinline__ T integer_fmod(T x, T y) {
    if (y == (T)0 || (IsSigned<T>::value && y == (T)-1)) return (T)0;
    return (T)(x % y);
}
template <class T>
__device__ T integer_power(T base, T exponent) {
    if (IsSigned<T>::value && exponent < (T)0) {
        if (base == (T)1) return (T)1;
        if (base == (T)-1) return (exponent & 1) ? (T)-1 : (T)1;
        return (T)0;
    }
    uint64 result = 1, factor = (uint64)base;
    for (uint64 bits = (uint64)exponent; bits; bits >>= 1) {
        if (bits & 1) result *= factor;
        factor *= factor;
    }
    return (T)result;
}
template <class T>
__device__ __forceinline__ T shift_left(T x, T count) {
    if (count < (T)0 || (uint64)count >= 8 * sizeof(T)) return (T)0;
    return (T)((uint64)x << (int)count);
}
template <class T>
__device__ __forceinline__ T shift_right(T x, T count) {
    if (count < (T)0 || (uint64)count >= 8 * sizeof(T)) return x < (T)0 ? (T)-1 : (T)0;
    return (T)(x >> (int)count);
}

template <class C>
__device__ __forceinline__ C sigmoid(C x) {
    const C decay = exp(-fabs(x));
    return (x < (C)0 ? decay : (C)1) / ((C)1 + decay);
}
template <class C>
__device__ __forceinline__ C softplus(C x) {
    return maximum(x, (C)0) + log1p(exp(-fabs(x)));
}
template <class C>
__device__ __forceinline__ C logaddexp(C x, C y) {
    const C distance = x == y ? (C)0 : fabs(x - y);
    return maximum(x, y) + log1p(exp(-distance));
}
template <class C>
__device__ __forceinline__ C gelu_inner(C x) {
    return (x * ((C)1 + (C)0.044715 * x * x)) * (C)0.7978845608028654;
}
template <class C>
__device__ __forceinline__ C gelu_gradient(C x) {
    const C area = (C)0.5 * ((C)1 + erf(x * (C)0.7071067811865476));
    return area + x * (C)0.3989422804014327 * exp((C)-0.5 * x * x);
}
template <class C>
__device__ __forceinline__ C gelu_tanh_gradient(C x) {
    const C t = tanh(gelu_inner(x));
    const C inner = x * ((C)1 + (C)0.134145 * x * x) * (C)0.3989422804014327;
    return (C)0.5 * ((C)1 + t) + inner * ((C)1 - t * t);
}
