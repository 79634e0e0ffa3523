package dev.rpcx.sample.orders;

import dev.rpcx.Method;
import dev.rpcx.RPCXServer;

/** Service that takes orders, published as {@code orders}. */
@RPCXServer("orders")
public class Orders {
    private final StockClient stock;

    /** Called by Spring, which passes the client. */
    public Orders(StockClient stock) {
        this.stock = stock;
    }

    @Method
    public String order(String article, int count) {
        return count + " × " + article + " ordered, " + stock.take(article, count) + " left";
    }
}
