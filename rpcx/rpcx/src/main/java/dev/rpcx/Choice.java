package dev.rpcx;

/**
 * How a client chooses an instance for each call. It chooses among the connected instances that are not ejected. An
 * instance is ejected for some seconds after too many of its calls have failed. If all connected instances are ejected,
 * the client chooses any of them.
 */
public enum Choice {
    /**
     * Picks two instances at random, and chooses the one with fewer calls in flight. This is the default. Clients that
     * compared all instances would all choose the same idle one. Source: Mitzenmacher, "The Power of Two Choices in
     * Randomized Load Balancing", 2001.
     */
    LEAST_LOADED,
    /**
     * Chooses the instances in rotation. Each instance gets calls in proportion to its weight, evenly spread. Source:
     * nginx's smooth weighted round robin.
     */
    WEIGHTED_ROUND_ROBIN,
    /**
     * Sends calls with an equal {@link RouteBy} argument to the same instance, as long as that instance is there. When
     * an instance comes or goes, most other arguments keep their instance. Calls without such an argument are
     * distributed as by {@link #LEAST_LOADED}.
     */
    CONSISTENT_HASH
}
