/** Calls that fail: start at {@link dev.rpcx.examples.errors.WhatWentWrong}. */
package dev.rpcx.examples.errors;
