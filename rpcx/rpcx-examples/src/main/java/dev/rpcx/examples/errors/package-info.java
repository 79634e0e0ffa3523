/** Shows calls that fail. Start at {@link dev.rpcx.examples.errors.WhatWentWrong}. */
package dev.rpcx.examples.errors;
