package dev.rpcx;

/** How a client with several instances to call chooses one for each call; among those that are connected and have not been ejected. */
public enum Choice {
    /**
     * Of two taken at random the one with fewer calls under way: as good as looking at all, and no herd runs to the idle one. The default.
     * Source: Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001.
     */
    LEAST_LOADED,
    /** Each in turn, as often as its weight says, evenly spread. Source: nginx's smooth weighted round robin. */
    WEIGHTED_ROUND_ROBIN,
    /**
     * Calls with an equal {@link RouteBy} argument go to the same instance as long as it is there; when one comes or goes, few others
     * change. Methods without such an argument go by {@link #LEAST_LOADED}.
     */
    CONSISTENT_HASH
}
