package dev.rpcx.sample.stock;

import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Service that knows what is on the shelves, published as {@code stock}. */
@RPCXServer("stock")
public class Stock {
    /** Number of pieces of each article. Handlers of several calls can change it at the same time. */
    private final Map<String, Integer> left = new ConcurrentHashMap<>(Map.of("tea", 10, "coffee", 3));

    /** Called by Spring. */
    public Stock() {}

    /**
     * Takes {@code count} pieces of an article from the shelf, or none if there are fewer.
     *
     * @return number of pieces that are left
     * @throws RPCXException if there is no such article
     */
    @Method
    public int take(String article, int count) {
        Integer now = left.computeIfPresent(article, (key, had) -> had >= count ? had - count : had);
        if (now == null) {
            throw new RPCXException(RPCXException.Code.INVALID, "no article " + article);
        }
        return now;
    }
}
