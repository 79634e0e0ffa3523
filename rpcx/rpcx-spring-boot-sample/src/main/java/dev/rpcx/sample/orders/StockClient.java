package dev.rpcx.sample.orders;

import dev.rpcx.Method;
import dev.rpcx.RPCXClient;

/** Where the stock is says {@code rpcx.services.stock}. */
@RPCXClient(remoteServerName = "stock")
public interface StockClient {
    @Method
    int take(String article, int count);
}
