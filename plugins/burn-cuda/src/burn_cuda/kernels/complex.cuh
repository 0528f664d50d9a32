// Complex numbers: arithmetic like NumPy's, and functions, which are computed in double. Formulas and
// branch cuts follow W. Kahan, "Branch cuts for complex elementary functions, or much ado about
// nothing's sign bit" (1987), division R. L. Smith (1962), and infinite and NaN parts the special
// cases of the array API standard.

template <class R>
struct Complex {
    R re, im;
    Complex() = default;
    __device__ __forceinline__ Complex(R x, R y) : re(x), im(y) {}
    template <class S>
    __device__ __forceinline__ Complex(S x) : re((R)x), im((R)0) {}
    template <class S>
    __device__ __forceinline__ Complex(Complex<S> x) : re((R)x.re), im((R)x.im) {}
};
typedef Complex<float> complex64;
typedef Complex<double> complex128;

#define BURN_COMPLEX template <class R> __device__ __forceinline__
BURN_COMPLEX Complex<R> operator+(Complex<R> x, Complex<R> y) {
    return Complex<R>(x.re + y.re, x.im + y.im);
}
BURN_COMPLEX Complex<R> operator-(Complex<R> x, Complex<R> y) {
    return Complex<R>(x.re - y.re, x.im - y.im);
}
BURN_COMPLEX Complex<R> operator-(Complex<R> x) { return Complex<R>(-x.re, -x.im); }
BURN_COMPLEX Complex<R> operator*(Complex<R> x, Complex<R> y) {
    return Complex<R>(x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re);
}

// Parts that are larger, a few of which have no finite sum, are made smaller, and tiny ones larger:
// then no quotient of them leaves the range unless that of the numbers does.
template <class R>
struct Range;
template <>
struct Range<float> {
    static constexpr float huge = 1e37f, tiny = 1e-30f, up = 1.152921504606846976e18f;  // 2^60
};
template <>
struct Range<double> {
    static constexpr double huge = 1e300, tiny = 1e-290, up = 1.2676506002282294e30;  // 2^100
};
BURN_COMPLEX R larger_part(Complex<R> x) { return fmax(fabs(x.re), fabs(x.im)); }
BURN_COMPLEX R factor_to_range(Complex<R> x) {
    const R size = larger_part(x);
    return size > Range<R>::huge ? (R)0.0625
        : size < Range<R>::tiny && size > (R)0 ? Range<R>::up : (R)1;
}
BURN_COMPLEX Complex<R> operator/(Complex<R> x, Complex<R> y) {
    const R of_x = factor_to_range(x), of_y = factor_to_range(y), factor = of_y / of_x;
    x.re *= of_x, x.im *= of_x, y.re *= of_y, y.im *= of_y;
    const R across = fabs(y.re), up = fabs(y.im);
    if (across >= up) {
        if (across == (R)0 && up == (R)0) return Complex<R>(x.re / across, x.im / across);
        const R ratio = y.im / y.re, scale = (R)1 / (y.re + y.im * ratio);
        return Complex<R>(
            (x.re + x.im * ratio) * scale * factor, (x.im - x.re * ratio) * scale * factor);
    }
    const R ratio = y.re / y.im, scale = (R)1 / (y.im + y.re * ratio);
    return Complex<R>(
        (x.re * ratio + x.im) * scale * factor, (x.im * ratio - x.re) * scale * factor);
}
BURN_COMPLEX bool operator==(Complex<R> x, Complex<R> y) { return x.re == y.re && x.im == y.im; }
BURN_COMPLEX bool operator!=(Complex<R> x, Complex<R> y) { return !(x == y); }

BURN_COMPLEX Complex<R> conjugate(Complex<R> x) { return Complex<R>(x.re, -x.im); }
BURN_COMPLEX R magnitude(Complex<R> x) { return (R)hypot((double)x.re, (double)x.im); }
BURN_COMPLEX bool is_infinite(Complex<R> x) {
    const R infinity = bits_as_float(0x7f800000u);
    return fabs(x.re) == infinity || fabs(x.im) == infinity;
}
BURN_COMPLEX bool is_finite(Complex<R> x) {
    const R infinity = bits_as_float(0x7f800000u);
    return fabs(x.re) < infinity && fabs(x.im) < infinity;
}
BURN_COMPLEX Complex<R> sign_of(Complex<R> x) {
    if (x.re == (R)0 && x.im == (R)0) return Complex<R>((R)0, (R)0);
    if (!is_finite(x)) return Complex<R>(bits_as_float(0x7fc00000u), bits_as_float(0x7fc00000u));
    const R longer = larger_part(x);
    const complex128 scaled(x.re / longer, x.im / longer);
    const double length = magnitude(scaled);
    return Complex<R>((R)(scaled.re / length), (R)(scaled.im / length));
}

__device__ __forceinline__ bool is_infinite(double x) {
    return fabs(x) == bits_as_float(0x7f800000u);
}
__device__ __forceinline__ bool is_finite(double x) { return fabs(x) < bits_as_float(0x7f800000u); }

// i * x and x / i.
__device__ __forceinline__ complex128 times_i(complex128 x) { return complex128(-x.im, x.re); }
__device__ __forceinline__ complex128 over_i(complex128 x) { return complex128(x.im, -x.re); }

__device__ inline double log_of_magnitude(complex128 x) {
    double longer = fabs(x.re), shorter = fabs(x.im);
    if (longer < shorter) {
        const double other = longer;
        longer = shorter;
        shorter = other;
    }
    if (is_infinite(longer) || is_infinite(shorter)) return bits_as_float(0x7f800000u);
    if (longer > 0.5 && longer < 2.0)
        return 0.5 * log1p((longer - 1.0) * (longer + 1.0) + shorter * shorter);
    if (shorter == 0.0) return log(longer);
    const double ratio = shorter / longer;
    return log(longer) + 0.5 * log1p(ratio * ratio);
}
__device__ inline complex128 wide_exp(complex128 x) {
    const double length = exp(x.re);
    if (x.im == 0.0) return complex128(length, x.im);
    if (is_infinite(x.re) && !is_finite(x.im))
        return complex128(length, x.re < 0.0 ? 0.0 : x.im - x.im);
    return complex128(length * cos(x.im), length * sin(x.im));
}
__device__ inline complex128 wide_expm1(complex128 x) {
    if (x.im == 0.0) return complex128(expm1(x.re) + 0.0, x.im);  // of -0.0 too it is 0.0
    if (is_infinite(x.re)) {
        const complex128 y = wide_exp(x);
        return complex128(y.re - 1.0, y.im);
    }
    const double half = sin(0.5 * x.im);
    return complex128(expm1(x.re) * cos(x.im) - 2.0 * half * half, exp(x.re) * sin(x.im));
}
__device__ inline complex128 wide_log(complex128 x) {
    return complex128(log_of_magnitude(x), atan2(x.im, x.re));
}
__device__ inline complex128 wide_log1p(complex128 x) {
    const double angle = atan2(x.im, 1.0 + x.re);
    if (fabs(x.re) < 0.5 && fabs(x.im) < 0.5)
        return complex128(0.5 * log1p(x.re * (2.0 + x.re) + x.im * x.im), angle);
    return complex128(log_of_magnitude(complex128(1.0 + x.re, x.im)), angle);
}
__device__ inline complex128 wide_log2(complex128 x) {
    const complex128 y = wide_log(x);
    return complex128(y.re * 1.4426950408889634, y.im * 1.4426950408889634);
}
__device__ inline complex128 wide_log10(complex128 x) {
    const complex128 y = wide_log(x);
    return complex128(y.re * 0.4342944819032518, y.im * 0.4342944819032518);
}
__device__ inline complex128 wide_sqrt(complex128 x) {
    double across = fabs(x.re), up = fabs(x.im), factor = 1.0;
    if (across == 0.0 && up == 0.0) return complex128(0.0, x.im);
    if (is_infinite(up)) return complex128(up, x.im);
    if (across > 1e300 || up > 1e300) {
        across *= 0.0625, up *= 0.0625, factor = 4.0;
    } else if (across < 1e-290 && up < 1e-290) {
        across *= 1.2676506002282294e30, up *= 1.2676506002282294e30;  // 2^100
        factor = 8.881784197001252e-16;                                // 2^-50
    }
    const double root = sqrt(0.5 * (across + hypot(across, up)));
    const double other = factor * (up / (root + root)), most = factor * root;
    if (x.re >= 0.0) return complex128(most, copysign(other, x.im));
    return complex128(other, copysign(most, x.im));
}
__device__ inline complex128 wide_sinh(complex128 x) {
    if (x.im == 0.0) return complex128(sinh(x.re), x.im);
    if (!is_finite(x.im) && (x.re == 0.0 || is_infinite(x.re)))
        return complex128(x.re, x.im - x.im);
    return complex128(sinh(x.re) * cos(x.im), cosh(x.re) * sin(x.im));
}
__device__ inline complex128 wide_cosh(complex128 x) {
    if (x.im == 0.0) return complex128(cosh(x.re), copysign(1.0, x.re) * x.im);
    if (!is_finite(x.im)) {
        if (x.re == 0.0) return complex128(x.im - x.im, x.re);
        if (is_infinite(x.re)) return complex128(fabs(x.re), x.im - x.im);
    }
    return complex128(cosh(x.re) * cos(x.im), sinh(x.re) * sin(x.im));
}
__device__ inline complex128 wide_tanh(complex128 x) {
    if (x.im == 0.0) return complex128(tanh(x.re), x.im);
    if (x.re == 0.0 && !is_finite(x.im)) return complex128(x.re, x.im - x.im);
    if (is_infinite(x.re)) return complex128(copysign(1.0, x.re), copysign(0.0, x.im));
    if (!is_finite(x.im)) return complex128(x.im - x.im, x.im - x.im);
    if (fabs(x.re) > 20.0) {
        const double decay = 4.0 * exp(-2.0 * fabs(x.re));
        return complex128(copysign(1.0, x.re), decay * sin(x.im) * cos(x.im));
    }
    const double slope = tan(x.im), s = sinh(x.re), square = 1.0 + slope * slope;
    const double below = 1.0 + square * s * s;
    return complex128(square * sqrt(1.0 + s * s) * s / below, slope / below);
}
__device__ inline complex128 wide_sin(complex128 x) { return over_i(wide_sinh(times_i(x))); }
__device__ inline complex128 wide_cos(complex128 x) { return wide_cosh(times_i(x)); }
__device__ inline complex128 wide_tan(complex128 x) { return over_i(wide_tanh(times_i(x))); }
// asin of an infinite or NaN part, from which acos and acosh follow.
__device__ inline complex128 asin_at_limits(complex128 x) {
    const double nan = x.re + x.im - (x.re + x.im);
    if (is_infinite(x.im)) {
        if (x.re != x.re) return complex128(nan, x.im);
        return complex128(copysign(is_infinite(x.re) ? 0.7853981633974483 : 0.0, x.re), x.im);
    }
    if (is_infinite(x.re)) {
        const double angle = x.im != x.im ? nan : copysign(1.5707963267948966, x.re);
        return complex128(angle, copysign(x.re, x.im));
    }
    return complex128(x.re == 0.0 ? x.re : nan, nan);
}
// The logarithm of 16 for numbers so large that products of their roots leave the range, else 0. Their
// inverse sines, cosines and the like are those of a 16th, whose logarithmic part is that much less.
__device__ inline double log_of_sixteenth(complex128& x) {
    if (larger_part(x) <= Range<double>::huge) return 0.0;
    x.re *= 0.0625, x.im *= 0.0625;
    return 2.772588722239781;
}
__device__ inline double moved_from_0(double x, double distance) {
    return x + copysign(distance, x);
}
__device__ inline complex128 wide_asin(complex128 x) {
    if (!is_finite(x)) return asin_at_limits(x);
    const double rest = log_of_sixteenth(x);
    const complex128 u = wide_sqrt(complex128(1.0 - x.re, -x.im));
    const complex128 v = wide_sqrt(complex128(1.0 + x.re, x.im));
    return complex128(
        atan2(x.re, u.re * v.re - u.im * v.im),
        moved_from_0(asinh(u.re * v.im - u.im * v.re), rest));
}
__device__ inline complex128 wide_acos(complex128 x) {
    if (!is_finite(x)) {
        const complex128 y = asin_at_limits(x);
        return complex128(1.5707963267948966 - y.re, -y.im);
    }
    const double rest = log_of_sixteenth(x);
    const complex128 u = wide_sqrt(complex128(1.0 - x.re, -x.im));
    const complex128 v = wide_sqrt(complex128(1.0 + x.re, x.im));
    return complex128(
        2.0 * atan2(u.re, v.re), moved_from_0(asinh(v.re * u.im - v.im * u.re), rest));
}
__device__ inline complex128 wide_acosh(complex128 x) {
    if (!is_finite(x)) {
        const complex128 y = asin_at_limits(x);
        return complex128(fabs(y.im), copysign(1.5707963267948966 - y.re, x.im));
    }
    const double rest = log_of_sixteenth(x);
    const complex128 u = wide_sqrt(complex128(x.re - 1.0, x.im));
    const complex128 v = wide_sqrt(complex128(x.re + 1.0, x.im));
    return complex128(asinh(u.re * v.re + u.im * v.im) + rest, 2.0 * atan2(u.im, v.re));
}
__device__ inline complex128 wide_atanh(complex128 x) {
    if (is_infinite(x.re) || is_infinite(x.im)) {
        const double angle = x.im != x.im ? x.im : copysign(1.5707963267948966, x.im);
        return complex128(copysign(0.0, x.re), angle);
    }
    if (x.re == 0.0 && x.im != x.im) return x;
    const double sum = x.re + x.im;
    if (sum != sum) return complex128(sum, sum);
    const double sign = copysign(1.0, x.re), across = fabs(x.re), up = sign * x.im;
    if (across > 1e150 || fabs(up) > 1e150) {
        const double length = hypot(across, up);
        return complex128(
            sign * (across / length / length), sign * copysign(1.5707963267948966, up));
    }
    const double near = 1.0 - across;
    return complex128(
        sign * 0.25 * log1p(4.0 * across / (near * near + up * up)),
        sign * 0.5 * atan2(2.0 * up, near * (1.0 + across) - up * up));
}
__device__ inline complex128 wide_asinh(complex128 x) { return over_i(wide_asin(times_i(x))); }
__device__ inline complex128 wide_atan(complex128 x) { return over_i(wide_atanh(times_i(x))); }

#define BURN_FUNCTION(name) \
    BURN_COMPLEX Complex<R> name(Complex<R> x) { return Complex<R>(wide_##name(complex128(x))); }
BURN_FUNCTION(exp)
BURN_FUNCTION(expm1)
BURN_FUNCTION(log)
BURN_FUNCTION(log1p)
BURN_FUNCTION(log2)
BURN_FUNCTION(log10)
BURN_FUNCTION(sqrt)
BURN_FUNCTION(sin)
BURN_FUNCTION(cos)
BURN_FUNCTION(tan)
BURN_FUNCTION(sinh)
BURN_FUNCTION(cosh)
BURN_FUNCTION(tanh)
BURN_FUNCTION(asin)
BURN_FUNCTION(acos)
BURN_FUNCTION(atan)
BURN_FUNCTION(asinh)
BURN_FUNCTION(acosh)
BURN_FUNCTION(atanh)
BURN_COMPLEX Complex<R> rint(Complex<R> x) { return Complex<R>(rint(x.re), rint(x.im)); }

// Small integer powers are products.
__device__ inline complex128 wide_pow(complex128 x, complex128 y) {
    if (y.re == 0.0 && y.im == 0.0) return complex128(1.0, 0.0);
    if (y.im == 0.0 && y.re == floor(y.re) && fabs(y.re) <= 100.0) {
        complex128 result(1.0, 0.0), factor = x;
        for (int bits = (int)fabs(y.re); bits; bits >>= 1) {
            if (bits & 1) result = result * factor;
            factor = factor * factor;
        }
        return y.re < 0.0 ? complex128(1.0, 0.0) / result : result;
    }
    if (x.re == 0.0 && x.im == 0.0 && y.re > 0.0) return complex128(0.0, 0.0);
    return wide_exp(y * wide_log(x));
}
BURN_COMPLEX Complex<R> pow(Complex<R> x, Complex<R> y) {
    return Complex<R>(wide_pow(complex128(x), complex128(y)));
}

// Two additions that are not atomic together: the kernel does not read the sums.
BURN_COMPLEX void atomic_sum(Complex<R>* address, Complex<R> value) {
    atomicAdd(&address->re, value.re);
    atomicAdd(&address->im, value.im);
}
