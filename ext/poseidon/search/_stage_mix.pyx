# distutils: language = c++
"""The least time of any mix of stages, fractions allowed: a linear program over kinds, solved through its dual."""

from libc.math cimport INFINITY, fabs
from libcpp.algorithm cimport sort
from libcpp.vector cimport vector

cdef struct Point:
    # What a kind makes of one unit of its pool.
    double stages
    double cost
    double layers


cdef struct Step:
    # From one corner of a pool's hull to the next: so many stages more at so much cost each.
    double slope
    double stages
    double cost
    double layers


cdef struct Mix:
    double cost
    double layers
    bint exists


cdef bint fewer_stages(const Point& a, const Point& b) noexcept nogil:
    return a.stages < b.stages or (a.stages == b.stages and a.cost < b.cost)


cdef bint cheaper(const Step& a, const Step& b) noexcept nogil:
    return a.slope < b.slope


cdef class StageMix:
    """N stages of K kinds that use up all units of P pools (or at most these, with `allow_idle`) and hold L layers.

    A stage of kind k takes `units[k]` of pool `pool_of_kind[k]` (int32) and `per_layer[k]` (float64, ms) for each of
    its layers, of which it holds `least` or more.
    """

    cdef int num_kinds, num_pools, num_stages, num_layers, least
    cdef bint allow_idle
    cdef vector[int] pool
    cdef vector[double] units, capacity, per_layer

    def __init__(
        self, const int[::1] pool_of_kind, const int[::1] units, const int[::1] pool_units, const double[::1] per_layer,
        int num_stages, int num_layers, int least, bint allow_idle
    ):
        cdef int index
        self.num_kinds, self.num_pools = units.shape[0], pool_units.shape[0]
        self.num_stages, self.num_layers, self.least = num_stages, num_layers, least
        self.allow_idle = allow_idle
        for index in range(self.num_kinds):
            self.pool.push_back(pool_of_kind[index])
            self.units.push_back(units[index])
            self.per_layer.push_back(per_layer[index])
        for index in range(self.num_pools):
            self.capacity.push_back(pool_units[index])

    def least_cost(self, const double[::1] most):
        """Least sum over stages of `per_layer` x layers (ms), rounding subtracted, when a stage of kind k holds at most
        `most[k]` layers; infinite where no mix holds the model.
        """
        if most.shape[0] != self.num_kinds:
            raise ValueError(f"limits of {most.shape[0]} kinds; there are {self.num_kinds}")
        cdef double least
        with nogil:
            least = self._least_cost(&most[0])
        return least

    cdef double _least_cost(self, const double* most) noexcept nogil:
        # The dual in the price of a layer is concave and piecewise linear: the tangents at both ends of a bracket meet
        # at the next price. Every value of the dual is a bound.
        cdef double low = INFINITY, high = 0.0, price, value, meeting, best = -INFINITY
        cdef double low_value, low_slope, high_value, high_slope, slope
        cdef int kind, _turn
        cdef Mix mix = self._mix(most, 1.0, True)
        if not mix.exists or mix.layers < self.num_layers * (1 - 1e-12):
            return INFINITY
        if self.least * self.num_stages > self.num_layers:
            return INFINITY
        for kind in range(self.num_kinds):
            if most[kind] >= self.least:
                low = min(low, self.per_layer[kind])
                high = max(high, self.per_layer[kind])
        mix = self._mix(most, low, False)
        low_value, low_slope = self._dual(mix, low), self.num_layers - mix.layers
        best = self._safe(mix, low)
        if low_slope <= 0:
            return best
        high = max(2 * high, 1e-9)
        for _turn in range(60):
            mix = self._mix(most, high, False)
            high_value, high_slope = self._dual(mix, high), self.num_layers - mix.layers
            best = max(best, self._safe(mix, high))
            if high_slope <= 0:
                break
            low, low_value, low_slope, high = high, high_value, high_slope, 4 * high
        else:
            return best
        for _turn in range(100):
            if high_slope == 0 or low_slope - high_slope <= 0:
                break
            price = (high_value - high_slope * high - low_value + low_slope * low) / (low_slope - high_slope)
            price = min(max(price, low), high)
            meeting = low_value + low_slope * (price - low)
            mix = self._mix(most, price, False)
            value, slope = self._dual(mix, price), self.num_layers - mix.layers
            best = max(best, self._safe(mix, price))
            if value >= meeting - 1e-13 * fabs(meeting) or price <= low or price >= high:
                break
            if slope > 0:
                low, low_value, low_slope = price, value, slope
            else:
                high, high_value, high_slope = price, value, slope
        return best

    cdef double _dual(self, Mix mix, double price) noexcept nogil:
        return mix.cost + price * self.num_layers

    cdef double _safe(self, Mix mix, double price) noexcept nogil:
        return self._dual(mix, price) - 1e-13 * (fabs(mix.cost) + fabs(price) * self.num_layers)

    cdef Mix _mix(self, const double* most, double price, bint free) noexcept nogil:
        # The cheapest mix of N stages where every layer earns `price` and costs what it takes (`free`: nothing).
        cdef vector[Step] steps
        cdef vector[Point] hull
        cdef Mix mix
        cdef double missing = self.num_stages, part
        cdef size_t index
        cdef int pool
        mix.cost, mix.layers, mix.exists = 0.0, 0.0, False
        for pool in range(self.num_pools):
            self._hull(pool, most, price, free, hull)
            if hull.empty():
                return mix
            missing -= self.capacity[pool] * hull[0].stages
            mix.cost += self.capacity[pool] * hull[0].cost
            mix.layers += self.capacity[pool] * hull[0].layers
            for index in range(1, hull.size()):
                steps.push_back(self._step(pool, hull[index - 1], hull[index]))
        sort(steps.begin(), steps.end(), cheaper)
        for index in range(steps.size()):
            if missing <= 0:
                break
            part = min(1.0, missing / steps[index].stages)
            missing -= part * steps[index].stages
            mix.cost += part * steps[index].cost
            mix.layers += part * steps[index].layers
        mix.exists = fabs(missing) <= 1e-9 * self.num_stages
        return mix

    cdef Step _step(self, int pool, Point before, Point after) noexcept nogil:
        cdef Step step
        step.slope = (after.cost - before.cost) / (after.stages - before.stages)
        step.stages = self.capacity[pool] * (after.stages - before.stages)
        step.cost = self.capacity[pool] * (after.cost - before.cost)
        step.layers = self.capacity[pool] * (after.layers - before.layers)
        return step

    cdef void _hull(self, int pool, const double* most, double price, bint free, vector[Point]& hull) noexcept nogil:
        # Corners of the lower convex hull of a pool's kinds in the plane of stages and cost, by number of stages.
        cdef vector[Point] points
        cdef Point point
        cdef double margin
        cdef size_t index
        cdef int kind
        hull.clear()
        if self.allow_idle:
            point.stages = point.cost = point.layers = 0.0
            points.push_back(point)
        for kind in range(self.num_kinds):
            if self.pool[kind] != pool or most[kind] < self.least:
                continue
            margin = -price if free else self.per_layer[kind] - price
            point.stages = 1 / self.units[kind]
            point.layers = (most[kind] if margin < 0 else self.least) / self.units[kind]
            point.cost = margin * point.layers
            points.push_back(point)
        sort(points.begin(), points.end(), fewer_stages)
        for index in range(points.size()):
            point = points[index]
            if not hull.empty() and hull.back().stages == point.stages:
                continue
            while hull.size() >= 2 and not is_corner(hull[hull.size() - 2], hull[hull.size() - 1], point):
                hull.pop_back()
            hull.push_back(point)


cdef bint is_corner(const Point& before, const Point& middle, const Point& after) noexcept nogil:
    return (middle.cost - before.cost) * (after.stages - before.stages) < (
        (after.cost - before.cost) * (middle.stages - before.stages)
    )
