package dev.rpcx;

/** How a client chooses an instance for each call, among the instances that are connected and have not been ejected. */
public enum Choice {
    /**
     * Of two random instances, the one with fewer calls under way. This is as good as a choice among all instances, and
     * the clients do not all run to the same idle instance. The default. Source: Mitzenmacher, "The Power of Two
     * Choices in Randomized Load Balancing", 2001.
     */
    LEAST_LOADED,
    /**
     * Each instance in turn, in proportion to its weight and evenly spread. Source: nginx's smooth weighted round
     * robin.
     */
    WEIGHTED_ROUND_ROBIN,
    /**
     * Calls with an equal {@link RouteBy} argument go to the same instance as long as it is there. When an instance
     * comes or goes, the calls of few other arguments change their instance. Calls without such an argument are
     * distributed as by {@link #LEAST_LOADED}.
     */
    CONSISTENT_HASH
}
