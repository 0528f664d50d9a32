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

template <class T>
struct IsSigned {
    static const bool value = (T)-1 < (T)0;
};

template <class C>
__device__ C floor_mod(C x, C y) {
    const C remainder = fmod(x, y);
    if (remainder == (C)0) return copysign((C)0, y);
    return (remainder < (C)0) != (y < (C)0) ? remainder + y : remainder;
}

template <class C>
__device__ __forceinline__ C sigmoid(C x) {
    const C decay = exp(-fabs(x));
    return (x < (C)0 ? decay : (C)1) / ((C)1 + decay);
}
