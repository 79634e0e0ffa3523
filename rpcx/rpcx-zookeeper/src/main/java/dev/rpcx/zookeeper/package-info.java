/**
 * A service's instances in ZooKeeper: an ephemeral node for each, named {@code host:port}, with {@code #weight} behind it where that is not
 * 1. Starting points: {@link dev.rpcx.zookeeper.ZooKeeperEndpoints} for clients, {@link dev.rpcx.zookeeper.ZooKeeperRegistration} for
 * servers. What runs here runs on ZooKeeper's own event thread.
 */
@NullMarked
package dev.rpcx.zookeeper;

import org.jspecify.annotations.NullMarked;
