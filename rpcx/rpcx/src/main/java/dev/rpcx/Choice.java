package dev.rpcx;

/**
 * How a client chooses an instance for each call. It chooses among the instances that are connected and have not been
 * ejected. An instance is ejected for some seconds after too many of its calls have failed. If there is no such
 * instance, the client chooses any that is connected.
 */
public enum Choice {
    /**
     * Picks two instances at random, and chooses the one with fewer calls in flight. The result is as good as a choice
     * among all instances, and the clients do not all choose the same idle instance. This is the default. Source:
     * Mitzenmacher, "The Power of Two Choices in Randomized Load Balancing", 2001.
     */
    LEAST_LOADED,
    /**
     * Chooses the instances in rotation. Each instance gets calls in proportion to its weight, evenly spread. Source:
     * nginx's smooth weighted round robin.
     */
    WEIGHTED_ROUND_ROBIN,
    /**
     * Sends calls with an equal {@link RouteBy} argument to the same instance, as long as that instance is there. When
     * an instance comes or goes, calls with most of the other arguments keep their instance. Calls without such an
     * argument are distributed as by {@link #LEAST_LOADED}.
     */
    CONSISTENT_HASH
}
