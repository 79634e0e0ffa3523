package dev.rpcx.spring;

import dev.rpcx.RPCXClient;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.ObjectProvider;

/**
 * Bean that makes the proxy of an {@link RPCXClient} interface. What it needs comes as arguments of its constructor,
 * which Spring accepts where it generates code ahead of time.
 *
 * @param type interface of the proxy
 */
record ClientFactoryBean<T>(Class<T> type, ObjectProvider<RPCXClients> clients) implements FactoryBean<T> {
    @Override
    public T getObject() {
        return clients.getObject().create(type);
    }

    @Override
    public Class<T> getObjectType() {
        return type;
    }
}
