package dev.rpcx.sample.stock;

import dev.rpcx.Method;
import dev.rpcx.RPCXException;
import dev.rpcx.RPCXServer;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Published as {@code stock}. */
@RPCXServer("stock")
public class Stock {
    private final Map<String, Integer> left = new ConcurrentHashMap<>(Map.of("tea", 10, "coffee", 3));

    /** For Spring. */
    public Stock() {}

    /** Takes so many from the shelf. @return how many are left */
    @Method
    public int take(String article, int count) {
        Integer now = left.computeIfPresent(article, (key, had) -> had >= count ? had - count : had);
        if (now == null) {
            throw new RPCXException(RPCXException.Code.INVALID, "no article " + article);
        }
        return now;
    }
}
