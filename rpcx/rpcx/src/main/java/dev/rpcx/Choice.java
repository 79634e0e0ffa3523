package dev.rpcx;

/**
 * The rule by which a client chooses one instance of a service for each call. The client chooses among the connected
 * instances that are not ejected. When too many calls to an instance have failed, the client ejects the instance for
 * some seconds. At most half of the instances are ejected at a time. If all connected instances are ejected, the client
 * chooses among all connected instances.
 */
public enum Choice {
    /**
     * Picks two instances at random, and chooses the one with fewer calls in flight. This is the default. If all
     * clients compared all instances, all clients would choose the same idle instance. Source: Mitzenmacher, "The Power
     * of Two Choices in Randomized Load Balancing", 2001.
     */
    LEAST_LOADED,
    /**
     * Chooses the instances one after the other. Each instance gets calls in proportion to its
     * {@link Endpoint#weight()}, evenly spread. Source: nginx's smooth weighted round robin.
     */
    WEIGHTED_ROUND_ROBIN,
    /**
     * Sends calls with an equal {@link RouteBy} argument to the same instance, as long as that instance can take calls.
     * When an instance comes or goes, most other arguments keep their instance. Calls without a {@link RouteBy}
     * argument are distributed as by {@link #LEAST_LOADED}.
     */
    CONSISTENT_HASH
}
